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
automountServiceAccountToken: false
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
