{{- define "toolgate.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "toolgate.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "toolgate.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "toolgate.selectorLabels" -}}
app.kubernetes.io/name: {{ include "toolgate.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "toolgate.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "toolgate.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* metadata of a resource: dict "root" . "suffix" "-x" "component" "x" "annotations" dict "labels" dict */}}
{{- define "toolgate.metadata" -}}
{{- $root := .root -}}
name: {{ include "toolgate.fullname" $root }}{{ .suffix }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "toolgate.labels" $root | nindent 2 }}
  {{- with .component }}
  app.kubernetes.io/component: {{ . }}
  {{- end }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- $annotations := merge (dict) (default (dict) .annotations) $root.Values.commonAnnotations }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "toolgate.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "toolgate.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "toolgate.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* The host of public_url, without its port. */}}
{{- define "toolgate.host" -}}
{{- regexReplaceAll ":[0-9]+$" (urlParse .Values.config.server.public_url).host "" -}}
{{- end -}}

{{/* Seconds of a duration such as 5s, 2m, 1h, 500ms. */}}
{{- define "toolgate.seconds" -}}
{{- $text := toString . -}}
{{- if hasSuffix "ms" $text -}}1
{{- else if hasSuffix "s" $text -}}{{ trimSuffix "s" $text }}
{{- else if hasSuffix "m" $text -}}{{ mul (trimSuffix "m" $text | int) 60 }}
{{- else if hasSuffix "h" $text -}}{{ mul (trimSuffix "h" $text | int) 3600 }}
{{- else -}}{{ fail (printf "config.server: %q is no duration such as 5s" $text) }}
{{- end -}}
{{- end -}}

{{- define "toolgate.grace" -}}
{{- if kindIs "invalid" .Values.terminationGracePeriodSeconds -}}
{{- $delay := include "toolgate.seconds" (default "5s" .Values.config.server.drain_delay) | int -}}
{{- $timeout := include "toolgate.seconds" (default "30s" .Values.config.server.drain_timeout) | int -}}
{{- add $delay $timeout (int .Values.preStopSleepSeconds) 15 -}}
{{- else -}}
{{- .Values.terminationGracePeriodSeconds | int -}}
{{- end -}}
{{- end -}}

{{/* What would be found out only at run time is said at once. */}}
{{- define "toolgate.validate" -}}
{{- if not .Values.config.server.public_url -}}
{{- fail "config.server.public_url is missing: what clients call this service, such as https://tools.example.com" -}}
{{- end -}}
{{- if not .Values.config.tenants -}}
{{- fail "config.tenants is empty: name at least one, such as --set-json 'config.tenants={\"acme\":{\"tools\":{\"allow\":[\"*\"]}}}'" -}}
{{- end -}}
{{- if not .Values.keys.existingSecret -}}
{{- fail "keys.existingSecret is missing: kubectl create secret generic toolgate-keys --from-literal=keys=$(openssl rand -hex 32), then --set keys.existingSecret=toolgate-keys" -}}
{{- end -}}
{{- if not .Values.database.existingSecret -}}
{{- fail "database.existingSecret is missing: a secret with the key `url` that holds postgres://user:password@host/database" -}}
{{- end -}}
{{- range $key := list "listen" "admin_listen" -}}
{{- if hasKey $.Values.config.server $key -}}
{{- fail (printf "config.server.%s is set by the chart: use `ports`" $key) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.config "keys_file" -}}
{{- fail "config.keys_file is set by the chart: use `keys.existingSecret`" -}}
{{- end -}}
{{- range $key := list "url" "url_file" "direct_url" "embedded" -}}
{{- if hasKey (default (dict) $.Values.config.database) $key -}}
{{- fail (printf "config.database.%s is set by the chart: use `database.existingSecret`" $key) -}}
{{- end -}}
{{- end -}}
{{- with (default (dict) .Values.config.redis).url -}}
{{- if regexMatch "://[^/@]*:[^/]*@" . -}}
{{- fail "config.redis.url has a password in it, and this becomes a ConfigMap: use `config.redis.password_file` with `secrets`" -}}
{{- end -}}
{{- end -}}
{{- if hasKey (default (dict) (default (dict) .Values.config.database).audit) "writer_url" -}}
{{- fail "config.database.audit.writer_url would be readable in a ConfigMap: use `config.database.audit.writer_url_file` with `secrets`" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs is missing: the gateways that the route belongs to" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (kindIs "invalid" .Values.autoscaling.targetCPUUtilizationPercentage) (kindIs "invalid" .Values.autoscaling.targetInflightCalls) -}}
{{- fail "autoscaling has no target: set targetCPUUtilizationPercentage or targetInflightCalls" -}}
{{- end -}}
{{- end -}}

{{/* The configuration file as pods read it. */}}
{{- define "toolgate.config" -}}
{{- $name := include "toolgate.fullname" . -}}
{{- $within := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- $hosts := concat $within (default (list) .Values.config.server.allowed_hosts) | uniq -}}
{{- $server := merge (dict "listen" (printf "0.0.0.0:%d" (int .Values.ports.http)) "admin_listen" (printf "0.0.0.0:%d" (int .Values.ports.admin)) "allowed_hosts" $hosts) .Values.config.server -}}
{{- $database := merge (dict "url_file" "/run/secrets/toolgate-database/url") (default (dict) .Values.config.database) -}}
{{- $chart := dict "server" $server "database" $database "keys_file" "/run/secrets/toolgate-keys/keys" -}}
{{- $config := merge (dict) $chart (omit .Values.config "server" "database") -}}
{{- range $key, $value := $config -}}
{{- if and (or (kindIs "map" $value) (kindIs "slice" $value)) (not $value) (ne $key "tenants") -}}
{{- $_ := unset $config $key -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{- define "toolgate.podSecurityContext" -}}
{{- if .Values.openshift -}}
{{- toYaml (omit .Values.podSecurityContext "runAsUser" "runAsGroup" "fsGroup") -}}
{{- else -}}
{{- toYaml .Values.podSecurityContext -}}
{{- end -}}
{{- end -}}

{{/* dict "root" . "owner" bool */}}
{{- define "toolgate.env" -}}
{{- $root := .root -}}
{{- $database := $root.Values.database -}}
{{- if and .owner $database.ownerSecret }}
- name: TOOLGATE_DATABASE__DIRECT_URL
  valueFrom:
    secretKeyRef: { name: {{ $database.ownerSecret }}, key: {{ $database.ownerUrlKey }} }
{{- else if $database.directUrlKey }}
- name: TOOLGATE_DATABASE__DIRECT_URL
  valueFrom:
    secretKeyRef: { name: {{ $database.existingSecret }}, key: {{ $database.directUrlKey }} }
{{- end }}
{{- with $root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "toolgate.mounts" -}}
- { name: config, mountPath: /etc/toolgate, readOnly: true }
- { name: keys, mountPath: /run/secrets/toolgate-keys, readOnly: true }
- { name: database, mountPath: /run/secrets/toolgate-database, readOnly: true }
- { name: tmp, mountPath: /tmp }
{{- range .Values.secrets }}
- { name: secret-{{ .name }}, mountPath: /run/secrets/{{ .name }}, readOnly: true }
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* dict "root" . "config" "name of the ConfigMap" */}}
{{- define "toolgate.volumes" -}}
{{- $root := .root -}}
- name: config
  configMap: { name: {{ .config }} }
- name: keys
  secret:
    secretName: {{ $root.Values.keys.existingSecret }}
    defaultMode: 0440
    items: [{ key: {{ $root.Values.keys.key }}, path: keys }]
- name: database
  secret:
    secretName: {{ $root.Values.database.existingSecret }}
    defaultMode: 0440
    items: [{ key: {{ $root.Values.database.urlKey }}, path: url }]
- name: tmp
  emptyDir: { sizeLimit: 64Mi }
{{- range $root.Values.secrets }}
- name: secret-{{ .name }}
  secret:
    secretName: {{ .existingSecret }}
    defaultMode: 0440
    {{- with .items }}
    items:
      {{- toYaml . | nindent 6 }}
    {{- end }}
{{- end }}
{{- with $root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A pod that runs one command of the binary and ends. dict "root" . "args" list "config" name "resources" dict "owner" bool */}}
{{- define "toolgate.once" -}}
{{- $root := .root -}}
restartPolicy: Never
serviceAccountName: {{ .serviceAccount }}
automountServiceAccountToken: false
{{- with $root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  {{- include "toolgate.podSecurityContext" $root | nindent 2 }}
containers:
  - name: toolgate
    image: {{ include "toolgate.image" $root | quote }}
    imagePullPolicy: {{ $root.Values.image.pullPolicy }}
    args:
      {{- toYaml .args | nindent 6 }}
    {{- with (include "toolgate.env" (dict "root" $root "owner" .owner) | trim) }}
    env:
      {{- . | nindent 6 }}
    {{- end }}
    securityContext:
      {{- toYaml $root.Values.securityContext | nindent 6 }}
    resources:
      {{- toYaml .resources | nindent 6 }}
    volumeMounts:
      {{- include "toolgate.mounts" $root | nindent 6 }}
volumes:
  {{- include "toolgate.volumes" (dict "root" $root "config" .config) | nindent 2 }}
{{- with $root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
