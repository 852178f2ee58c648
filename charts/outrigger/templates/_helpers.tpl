{{- define "outrigger.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- /* Names of a release are quoted wherever they stand: YAML takes some, such as 2024 and true, for no text. */}}
{{- define "outrigger.fullname" -}}
{{- $name := include "outrigger.name" . -}}
{{- $full := .Values.fullnameOverride -}}
{{- if not $full -}}
{{- $full = contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- end -}}
{{- $full = $full | trunc 52 | trimSuffix "-" -}}
{{- if not (regexMatch "^[a-z]" $full) -}}
{{- fail (printf "%q names a Service, which begins with a letter: give the release another name, or set fullnameOverride" $full) -}}
{{- end -}}
{{- $full -}}
{{- end -}}

{{- /* Of what belongs to no namespace, and so to one of the releases that have this name in several: (list $ "-view"). */}}
{{- define "outrigger.clusterName" -}}
{{- $root := index . 0 -}}
{{- printf "%s:%s%s" $root.Release.Namespace (include "outrigger.fullname" $root) (index . 1) -}}
{{- end -}}

{{- define "outrigger.selector" -}}
app.kubernetes.io/name: {{ include "outrigger.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{- define "outrigger.labels" -}}
{{ include "outrigger.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: outrigger
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* The namespaces whose jobs are run, a list as JSON; empty: all. */}}
{{- define "outrigger.namespaces" -}}
{{- toJson (concat (default list .Values.watchNamespaces) (list .Values.watchNamespace) | compact | uniq) -}}
{{- end -}}

{{- define "outrigger.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "outrigger.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name is needed where serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "outrigger.tokenKey" -}}
{{- default (printf "%s-token-key" (include "outrigger.fullname" .)) .Values.tokenKey.existingSecret -}}
{{- end -}}

{{/* The image of a role: (list $ "operator"). A flavour is a suffix of the tag; who writes a tag or digest has chosen. */}}
{{- define "outrigger.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- $name := $image.repository -}}
{{- with $root.Values.images.registry }}{{ $name = printf "%s/%s" (trimSuffix "/" .) $name }}{{ end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $name $image.digest -}}
{{- else -}}
{{- $own := $root.Chart.AppVersion -}}
{{- with $image.flavour }}{{ $own = printf "%s-%s" $own . }}{{ end -}}
{{- printf "%s:%s" $name (default $own $image.tag) -}}
{{- end -}}
{{- end -}}
