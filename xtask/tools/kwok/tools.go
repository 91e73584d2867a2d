//go:build tools

// Package tools keeps the kwok command of the local cluster in go.mod.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
