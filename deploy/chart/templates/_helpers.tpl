{{- define "penstock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "penstock.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "penstock.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "penstock.selector" -}}
app.kubernetes.io/name: {{ include "penstock.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "penstock.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "penstock.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "penstock.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "penstock.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The image of a role. Takes root, and image: what overrides it. */}}
{{- define "penstock.image" -}}
{{- $image := mergeOverwrite (deepCopy .root.Values.image) (default dict .image) -}}
image: {{ printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
{{- end -}}

{{/* The text of a setting. Helm reads numbers as floats, and would write 1000000 as 1e+06. */}}
{{- define "penstock.settingValue" -}}
{{- if kindIs "slice" . -}}
{{- join "," . -}}
{{- else if and (kindIs "float64" .) (eq . (floor .)) -}}
{{- int64 . -}}
{{- else -}}
{{- toString . -}}
{{- end -}}
{{- end -}}

{{/* The variables of all roles. Takes root, env: those of the role, and graceSeconds. */}}
{{- define "penstock.env" -}}
- name: PENSTOCK_STORE
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.stores.secret }}
      key: {{ .root.Values.stores.storeKey }}
- name: PENSTOCK_DATABASE
  valueFrom:
    secretKeyRef:
      name: {{ .root.Values.stores.secret }}
      key: {{ .root.Values.stores.databaseKey }}
- name: PENSTOCK_SHUTDOWN_GRACE_SECONDS
  value: {{ .graceSeconds | quote }}
{{- range $name, $value := .root.Values.settings }}
- name: {{ printf "PENSTOCK_%s" (upper $name) }}
  value: {{ include "penstock.settingValue" $value | quote }}
{{- end }}
{{- with concat .root.Values.env .env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A Deployment of a role. Takes root, role, name, values, args, port, probePort, graceSeconds, strategy. */}}
{{- define "penstock.deployment" -}}
{{- $root := .root -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  labels:
    {{- include "penstock.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not (dig "autoscaling" "enabled" false .values) }}
  replicas: {{ .values.replicas }}
  {{- end }}
  strategy:
    type: RollingUpdate
    rollingUpdate:
      {{- toYaml .strategy | nindent 6 }}
  selector:
    matchLabels:
      {{- include "penstock.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
  template:
    metadata:
      labels:
        {{- include "penstock.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
      annotations:
        checksum/toml: {{ $root.Values.toml | sha256sum }}
        {{- with .values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      serviceAccountName: {{ include "penstock.serviceAccountName" $root }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      # Longer than the role's own grace period, so that it ends by itself.
      terminationGracePeriodSeconds: {{ add .graceSeconds 15 }}
      {{- with $root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- toYaml $root.Values.podSecurityContext | nindent 8 }}
      containers:
        - name: {{ .role }}
          {{- include "penstock.image" (dict "root" $root "image" .values.image) | nindent 10 }}
          args:
            {{- toYaml .args | nindent 12 }}
          env:
            {{- include "penstock.env" (dict "root" $root "env" .values.env "graceSeconds" .graceSeconds) | nindent 12 }}
          {{- with $root.Values.envFrom }}
          envFrom:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - name: {{ .portName }}
              containerPort: {{ .port }}
          # A process that starts waits for Redis and PostgreSQL, and an API for its first key.
          startupProbe:
            httpGet:
              path: /health/live
              port: {{ .portName }}
            periodSeconds: 2
            failureThreshold: 60
          # Liveness doesn't ask the stores: a restart wouldn't bring a Redis back.
          livenessProbe:
            httpGet:
              path: /health/live
              port: {{ .portName }}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet:
              path: /health/ready
              port: {{ .portName }}
            periodSeconds: 5
            timeoutSeconds: 3
          {{- if eq .role "api" }}
          # Time for the Service to take the pod out, before it stops listening.
          lifecycle:
            preStop:
              exec:
                command: [sleep, "5"]
          {{- end }}
          resources:
            {{- toYaml .values.resources | nindent 12 }}
          securityContext:
            {{- toYaml $root.Values.securityContext | nindent 12 }}
          volumeMounts:
            - name: tmp
              mountPath: /tmp
            {{- if $root.Values.toml }}
            - name: toml
              mountPath: /home/penstock/penstock.toml
              subPath: penstock.toml
              readOnly: true
            {{- end }}
            {{- with $root.Values.volumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir:
            sizeLimit: {{ $root.Values.tmpSizeLimit }}
        {{- if $root.Values.toml }}
        - name: toml
          configMap:
            name: {{ include "penstock.fullname" $root }}
        {{- end }}
        {{- with $root.Values.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "penstock.selector" $root | nindent 14 }}
              app.kubernetes.io/component: {{ .component }}
      {{- with .values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

{{/* A PodDisruptionBudget. Takes root, name and component. */}}
{{- define "penstock.pdb" -}}
{{- if .root.Values.podDisruptionBudget.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  labels:
    {{- include "penstock.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  maxUnavailable: {{ .root.Values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels:
      {{- include "penstock.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .component }}
{{- end -}}
{{- end -}}
