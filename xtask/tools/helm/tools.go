//go:build tools

// Package tools keeps the helm command, which renders the chart in tests, in go.mod.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
