{{/* The name of the application, for labels. */}}
{{- define "tollgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end }}

{{/* The name of all objects; suffixes of at most 10 characters fit into the 63 of a label. */}}
{{- define "tollgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "tollgate.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "tollgate.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* The version of the application, in characters that tags of images and labels may have. */}}
{{- define "tollgate.version" -}}
{{- .Chart.AppVersion | replace "+" "-" | trunc 63 -}}
{{- end }}

{{/* The labels by which objects select the pods of the service. They never change: a Deployment cannot change its own. */}}
{{- define "tollgate.selector" -}}
app.kubernetes.io/name: {{ include "tollgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end }}

{{/* The labels of objects, but for the component. */}}
{{- define "tollgate.commonLabels" -}}
app.kubernetes.io/name: {{ include "tollgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ include "tollgate.version" . | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The labels of the objects of the service. */}}
{{- define "tollgate.labels" -}}
{{ include "tollgate.commonLabels" . }}
app.kubernetes.io/component: server
{{- end }}

{{- define "tollgate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (include "tollgate.version" .) }}
{{- end -}}
{{- end }}

{{- define "tollgate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "tollgate.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{/* "true" if a Job applies migrations, and not the start of a pod. A SQLite file is open in one pod only. */}}
{{- define "tollgate.migrates" -}}
{{- and (eq .Values.database "postgresql") .Values.migration.enabled -}}
{{- end }}

{{/* The address that browsers use, if it is known. */}}
{{- define "tollgate.publicURL" -}}
{{- if .Values.config.PUBLIC_URL -}}
{{- .Values.config.PUBLIC_URL -}}
{{- else if and .Values.ingress.enabled .Values.ingress.hosts -}}
{{- printf "%s://%s" (ternary "https" "http" (ne .Values.ingress.tlsSecret "")) (first .Values.ingress.hosts) -}}
{{- else if and .Values.gatewayApi.httpRoute.enabled .Values.gatewayApi.httpRoute.hostnames -}}
{{- printf "https://%s" (first .Values.gatewayApi.httpRoute.hostnames) -}}
{{- end -}}
{{- end }}

{{/* The settings that are not secret. */}}
{{- define "tollgate.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "PUBLIC_URL" (include "tollgate.publicURL" .) -}}
{{- range $name, $value := $config }}
{{- if ne $value "" }}
{{ $name }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* The environment variables that name files with secrets. */}}
{{- define "tollgate.secretEnv" -}}
{{- if .Values.secrets.existingSecret }}
{{- range $name, $key := .Values.secrets.keys }}
- {name: {{ $name }}_FILE, value: /run/secrets/tollgate/{{ $key }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "tollgate.secretMount" -}}
{{- if and .Values.secrets.existingSecret .Values.secrets.keys }}
- {name: secrets, mountPath: /run/secrets/tollgate, readOnly: true}
{{- end }}
{{- end }}

{{- define "tollgate.secretVolume" -}}
{{- if and .Values.secrets.existingSecret .Values.secrets.keys }}
- name: secrets
  secret:
    secretName: {{ .Values.secrets.existingSecret }}
    defaultMode: 0440
    items:
      {{- range .Values.secrets.keys | values | uniq | sortAlpha }}
      - {key: {{ . }}, path: {{ . }}}
      {{- end }}
{{- end }}
{{- end }}

{{- define "tollgate.podSecurityContext" -}}
runAsNonRoot: true
{{ toYaml .Values.podSecurityContext }}
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "tollgate.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* What decides on which nodes a pod may run, and which secrets fetch its image. */}}
{{- define "tollgate.placement" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
