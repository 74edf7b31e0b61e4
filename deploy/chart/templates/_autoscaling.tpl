{{/* A ScaledObject of KEDA for a worker pool. Takes root, name, component and pool. */}}
{{- define "penstock.scaledObject" -}}
{{- $scaling := .pool.autoscaling -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ .name }}
  labels:
    {{- include "penstock.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  scaleTargetRef:
    name: {{ .name }}
  minReplicaCount: {{ $scaling.minReplicas }}
  maxReplicaCount: {{ $scaling.maxReplicas }}
  pollingInterval: {{ $scaling.pollingIntervalSeconds }}
  cooldownPeriod: {{ $scaling.cooldownSeconds }}
  triggers:
    {{- if $scaling.triggers }}
    {{- toYaml $scaling.triggers | nindent 4 }}
    {{- else }}
    - type: prometheus
      # The target is per pod, as KEDA and the HorizontalPodAutoscaler divide by the number of pods.
      metricType: AverageValue
      metadata:
        serverAddress: {{ required (printf "worker pool %s: autoscaling needs prometheusAddress" .pool.name) $scaling.prometheusAddress | quote }}
        query: {{ include "penstock.queueDepth" (dict "pool" .pool) | quote }}
        threshold: {{ $scaling.tasksPerReplica | quote }}
        # From 0 pods to 1 with the first task.
        activationThreshold: "0"
    {{- end }}
{{- end -}}

{{/*
Tasks that wait or run in the queues of a pool. Each orchestrator reports them for the whole store, hence max.
Running ones count too: a pool that has taken the last task must not be scaled down under it.
*/}}
{{- define "penstock.queueDepth" -}}
{{- $queues := default .pool.queues .pool.autoscaling.queues -}}
{{- if not $queues -}}
{{- fail (printf "worker pool %s: autoscaling needs queues, or autoscaling.queues" .pool.name) -}}
{{- end -}}
{{- $patterns := list -}}
{{- range $queues -}}
{{- $patterns = append $patterns (regexQuoteMeta . | replace "\\" "\\\\" | replace "\"" "\\\"") -}}
{{- end -}}
{{- $matchers := printf "queue=~\"%s\"" (join "|" $patterns) -}}
{{- with .pool.autoscaling.matchers -}}
{{- $matchers = printf "%s,%s" $matchers . -}}
{{- end -}}
sum(max by (queue) (penstock_tasks_waiting{ {{- $matchers -}} }) + max by (queue) (penstock_tasks_running{ {{- $matchers -}} }))
{{- end -}}
