{{- define "lws.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "lws.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Names of Services end at 63 characters, suffix included. */}}
{{- define "lws.metricsService" -}}
{{- include "lws.fullname" . | trunc 28 | trimSuffix "-" }}-controller-manager-metrics-service
{{- end }}

{{- define "lws.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "lws.name" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "lws.selectorLabels" -}}
control-plane: controller-manager
app.kubernetes.io/name: {{ include "lws.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "lws.config" -}}
{{- $config := dict
  "apiVersion" "config.lws.x-k8s.io/v1"
  "kind" "Configuration"
  "leaderElection" (dict "leaderElect" true)
  "internalCertManagement" (dict "enable" (not .Values.enableCertManager))
}}
{{- with .Values.gangSchedulingManagement }}
{{- $_ := set $config "gangSchedulingManagement" (deepCopy .) }}
{{- end }}
{{- with .Values.featureGates }}
{{- $_ := set $config "featureGates" (deepCopy .) }}
{{- end }}
{{- toYaml (mergeOverwrite $config (deepCopy .Values.config)) }}
{{- end }}

{{- define "lws.subject" -}}
- kind: ServiceAccount
  name: {{ include "lws.fullname" . }}-controller-manager
  namespace: {{ .Release.Namespace }}
{{- end }}
