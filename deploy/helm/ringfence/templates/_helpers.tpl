{{- define "ringfence.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "ringfence.selector" -}}
app.kubernetes.io/name: ringfence
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "ringfence.labels" -}}
{{ include "ringfence.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end -}}

{{- define "ringfence.image" -}}
{{ .repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{- /* What every pod has: nothing of its node. Keys have to be of mode 0600 and its user's own, and those of a secret's volume are root's
and of its group: a copy is made before anything starts. */ -}}
{{- define "ringfence.pod" -}}
automountServiceAccountToken: {{ if .account }}true{{ else }}false{{ end }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "ringfence.container" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* Copies the secrets. */ -}}
{{- define "ringfence.keys" -}}
- name: keys
  image: {{ include "ringfence.image" . }}
  imagePullPolicy: {{ .root.Values.image.pullPolicy }}
  command: ["/bin/sh", "-euc", "umask 077; for folder in /secrets/*; do cp -L \"$folder\"/* /run/ringfence/; done"]
  securityContext:
    {{- include "ringfence.container" . | nindent 4 }}
  resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 32Mi}}
  volumeMounts:
    {{- range .secrets }}
    - {name: {{ .volume }}, mountPath: /secrets/{{ .volume }}, readOnly: true}
    {{- end }}
    - {name: run, mountPath: /run/ringfence}
{{- end -}}

{{- define "ringfence.volumes" -}}
{{- range .secrets }}
- name: {{ .volume }}
  secret: {secretName: {{ .name }}, defaultMode: 288}
{{- end }}
- name: run
  emptyDir: {medium: Memory, sizeLimit: 4Mi}
{{- end -}}

{{- /* Replicas on different nodes where there are several. */ -}}
{{- define "ringfence.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "ringfence.selector" . | nindent 8 }}
{{- end -}}

{{- /* The service account of Ringfence inside the cluster, as the API server calls it. */ -}}
{{- define "ringfence.account" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "ringfence.name" . }}
{{- end -}}

{{- /* The secret with the certificate of Ringfence inside the cluster. */ -}}
{{- define "ringfence.certificate" -}}
{{ .Values.inCluster.tls.secret | default (printf "%s-tls" (include "ringfence.name" .)) }}
{{- end -}}

{{- /* Messages of crash kernels: where they are listened for, at which port of the node, and from where they may come. */ -}}
{{- define "ringfence.kdumpVariable" -}}
{{- with .root.Values.kdump }}{{- if .enabled -}}
- {name: RINGFENCE_WORKER_KDUMP_LISTEN, value: "{{ .listen }}:{{ .port }}"}
{{- end }}{{- end }}
{{- end -}}

{{- define "ringfence.kdumpPort" -}}
{{- with .root.Values.kdump }}{{- if .enabled -}}
- {name: kdump, containerPort: {{ .port }}, hostPort: {{ .port }}, protocol: UDP}
{{- end }}{{- end }}
{{- end -}}

{{- define "ringfence.kdumpIngress" -}}
{{- with .root.Values.kdump }}{{- if .enabled -}}
- ports: [{port: kdump, protocol: UDP}]
  {{- with .from }}
  from:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}{{- end }}
{{- end -}}

{{- /* The configuration of Ringfence inside the cluster. */ -}}
{{- define "ringfence.configuration" -}}
[standalone]
listen = "0.0.0.0:{{ .Values.inCluster.port }}"
data_dir = "/var/lib/ringfence/data"

[api]
certificate_file = "/run/tls/tls.crt"
key_file = "/run/tls/tls.key"
{{- if .Values.inCluster.tokensSecret }}
tokens_file = "/run/tokens/tokens.toml"
{{- end }}

[kubernetes]
clusters = [{{ .Values.inCluster.cluster | quote }}]
namespace = {{ .Release.Namespace | quote }}
gate = {{ .Values.gates.name | quote }}
adopt = [{{ printf "%s:%s" .Values.inCluster.cluster .Values.inCluster.segment | quote }}]
records = {{ .Values.inCluster.cluster | quote }}
operator = [{{ .Values.inCluster.cluster | quote }}]
{{- with .Values.inCluster.fencedStorage }}
fenced_storage = [{{ range $at, $driver := . }}{{ if $at }}, {{ end }}{{ $driver | quote }}{{ end }}]
{{- end }}
fenced_label = {{ .Values.inCluster.fencedLabel | quote }}
down_after_s = {{ .Values.inCluster.downAfterSeconds }}
ready_for_s = {{ .Values.inCluster.readyForSeconds }}

[metrics]
public = {{ .Values.inCluster.publicMetrics }}

[log]
format = {{ .Values.logFormat | quote }}
{{- with .Values.inCluster.moreConfiguration }}
{{ . }}
{{- end }}
{{- end -}}
