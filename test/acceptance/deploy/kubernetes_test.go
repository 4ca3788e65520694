package deploy

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/tollgate-dev/tollgate/test/must"
)

// object is what all objects have.
type object struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
}

// manifests are Kubernetes objects: those of deploy/kubernetes, or what the chart makes.
type manifests struct {
	objects    []object
	deployment apps.Deployment
	configs    map[string]core.ConfigMap
	services   []core.Service
	budget     policy.PodDisruptionBudget
	scaler     autoscaling.HorizontalPodAutoscaler
	network    networking.NetworkPolicy
	account    core.ServiceAccount
	claim      core.PersistentVolumeClaim
	ingress    networking.Ingress
	httpRoute  gateway.HTTPRoute
	grpcRoute  gateway.GRPCRoute
	monitor    monitoring.ServiceMonitor
	migration  batch.Job
	testPod    core.Pod
}

// TestKubernetes checks deploy/kubernetes, and what the chart makes of each file of values.
func TestKubernetes(t *testing.T) {
	checks := map[string]func(*testing.T, *manifests){
		"pod": checkPod, "rollout": checkRollout, "ports": checkPorts, "selectors": checkSelectors, "routes": checkRoutes,
		"hooks": checkHooks, "secrets": checkSecrets,
	}
	all := map[string]map[string]string{"kubernetes": {}}
	files, err := filepath.Glob(filepath.Join(deployFolder, "kubernetes", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		all["kubernetes"][filepath.Base(file)] = readDeployFile(t, "kubernetes", filepath.Base(file))
	}
	for name, file := range valueFiles(t) {
		all[name] = renderChart(t, readValues(t, file), "tollgate", "Helm")
	}
	for name, texts := range all {
		c := newManifests(t, texts)
		for what, check := range checks {
			t.Run(name+"/"+what, func(t *testing.T) { check(t, c) })
		}
	}
}

// newManifests parses files into Kubernetes' own types as the API server does: it rejects fields
// that are unknown or repeated, or that differ in case.
func newManifests(t *testing.T, files map[string]string) *manifests {
	t.Helper()
	c := &manifests{configs: map[string]core.ConfigMap{}}
	for file, text := range files {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for part := range strings.SplitSeq(text, "\n---\n") {
			c.addObject(t, file, part)
		}
	}
	return c
}

// addObject parses one YAML document and stores it in the field of its kind.
func (c *manifests) addObject(t *testing.T, file, text string) {
	t.Helper()
	document, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v\n%s", file, err, text)
	}
	var o object
	if err := json.Unmarshal(document, &o); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	c.objects = append(c.objects, o)
	var config core.ConfigMap
	var service core.Service
	into, known := map[string]any{
		"apps/v1 Deployment": &c.deployment, "v1 ConfigMap": &config, "v1 Service": &service,
		"policy/v1 PodDisruptionBudget": &c.budget, "autoscaling/v2 HorizontalPodAutoscaler": &c.scaler,
		"networking.k8s.io/v1 NetworkPolicy": &c.network, "networking.k8s.io/v1 Ingress": &c.ingress,
		"v1 ServiceAccount": &c.account, "v1 PersistentVolumeClaim": &c.claim, "v1 Pod": &c.testPod,
		"gateway.networking.k8s.io/v1 HTTPRoute": &c.httpRoute, "gateway.networking.k8s.io/v1 GRPCRoute": &c.grpcRoute,
		"monitoring.coreos.com/v1 ServiceMonitor": &c.monitor, "batch/v1 Job": &c.migration,
	}[o.APIVersion+" "+o.Kind]
	if !known {
		t.Fatalf("%s: unexpected %s %s", file, o.APIVersion, o.Kind)
	}
	strict, err := kjson.UnmarshalStrict(document, into)
	if err := errors.Join(append(strict, err)...); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if config.Name != "" {
		c.configs[config.Name] = config
	}
	if service.Name != "" {
		c.services = append(c.services, service)
	}
}

// isSingle reports whether the service keeps its data in a file that only one pod may use.
func (c *manifests) isSingle() bool {
	for _, v := range c.deployment.Spec.Template.Spec.Containers[0].Env {
		if v.Name == "DATABASE_URL_FILE" {
			return false
		}
	}
	return true
}

// serviceContainer returns the container of the service and its settings.
func (c *manifests) serviceContainer(t *testing.T) (core.Container, map[string]string) {
	t.Helper()
	if n := len(c.deployment.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("the pod has %d containers, want 1", n)
	}
	container := c.deployment.Spec.Template.Spec.Containers[0]
	values := map[string]string{}
	for _, from := range container.EnvFrom {
		for name, value := range c.configs[from.ConfigMapRef.Name].Data {
			values[name] = value
		}
	}
	for _, v := range container.Env {
		if v.Name != "TZ" && v.Name != "NODE" { // extraEnv of a file of values
			values[v.Name] = v.Value
		}
	}
	return container, values
}

// checkPod checks the pod's settings, grace period, privileges, probes and volumes.
func checkPod(t *testing.T, c *manifests) {
	pod := c.deployment.Spec.Template.Spec
	container, values := c.serviceContainer(t)
	checkEnvironment(t, values)
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= shutdownTime(t, values) {
		t.Errorf("a pod is killed after %v, but its shutdown may take %v", grace, shutdownTime(t, values))
	}
	s := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || *pod.AutomountServiceAccountToken ||
		pod.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
		*s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
		t.Error("the pod must run as an ordinary user with a read-only root, without capabilities and service account token")
	}
	for probe, path := range map[*core.Probe]string{
		container.LivenessProbe: "/health", container.StartupProbe: "/health", container.ReadinessProbe: "/ready",
	} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "api" {
			t.Errorf("a probe requests %v, want %s on port api", probe.HTTPGet, path)
		}
	}
	mounted := map[string]string{}
	for _, m := range container.VolumeMounts {
		mounted[m.Name] = m.MountPath
	}
	for _, v := range pod.Volumes {
		if mounted[v.Name] == "" {
			t.Errorf("the volume %s is not mounted", v.Name)
		}
		delete(mounted, v.Name)
		if v.ConfigMap != nil && v.Name != "authorities" && c.configs[v.ConfigMap.Name].Name == "" {
			t.Errorf("the ConfigMap %s is not defined", v.ConfigMap.Name)
		}
	}
	if len(mounted) > 0 {
		t.Errorf("these mounts have no volume: %v", mounted)
	}
}

// checkRollout checks that no request fails during a rollout: a new pod is ready before an
// old one ends, and clients stop sending requests to a pod before it closes its listeners.
func checkRollout(t *testing.T, c *manifests) {
	container, values := c.serviceContainer(t)
	spec := c.deployment.Spec
	if c.isSingle() {
		if spec.Strategy.Type != apps.RecreateDeploymentStrategyType {
			t.Errorf("the strategy is %s, want Recreate: only one pod may use the file", spec.Strategy.Type)
		}
	} else if r := spec.Strategy.RollingUpdate; r.MaxUnavailable.IntValue() != 0 || r.MaxSurge.IntValue() < 1 {
		t.Errorf("maxUnavailable is %s and maxSurge is %s, want 0 and at least 1", r.MaxUnavailable, r.MaxSurge)
	}
	drain, err := time.ParseDuration(values["SHUTDOWN_DRAIN"])
	must.Succeed(t, err)
	p := container.ReadinessProbe
	if detected := time.Duration(p.PeriodSeconds*p.FailureThreshold+p.TimeoutSeconds) * time.Second; detected >= drain {
		t.Errorf("the readiness probe may need %v to detect that a pod drains, want less than SHUTDOWN_DRAIN (%v)",
			detected, drain)
	}
	if spec.MinReadySeconds == 0 {
		t.Error("minReadySeconds is 0: an old pod may end before clients have found the new one")
	}
}

// checkPorts checks that the pod's ports are the defaults of the service, that every
// Service and NetworkPolicy uses only these ports, and that the debug port is not open to
// everybody.
func checkPorts(t *testing.T, c *manifests) {
	container, _ := c.serviceContainer(t)
	settings := map[string]string{
		"api": "PORT", "limit-http": "RATELIMIT_HTTP_PORT", "limit-grpc": "GRPC_PORT", "debug": "DEBUG_PORT",
	}
	has := map[string]bool{}
	for _, p := range container.Ports {
		has[p.Name] = true
		if want := knownSettings(t)[settings[p.Name]].Default; want != strconv.Itoa(int(p.ContainerPort)) {
			t.Errorf("port %s is %d, want the default of the service, %s", p.Name, p.ContainerPort, want)
		}
	}
	for _, s := range c.services {
		for _, p := range s.Spec.Ports {
			if !has[p.TargetPort.StrVal] {
				t.Errorf("the Service %s targets the port %s, which the pod does not have", s.Name, p.TargetPort.StrVal)
			}
			if p.TargetPort.StrVal == "debug" && !c.isScraped(s) {
				t.Errorf("the Service %s exposes the debug listener", s.Name)
			}
		}
	}
	for _, rule := range c.network.Spec.Ingress {
		if rule.Ports[0].Port.StrVal == "api" && len(rule.From) > 0 && !slices.ContainsFunc(rule.From, c.isTestPod) {
			t.Error("the NetworkPolicy does not let the pod of helm test in")
		}
		for _, p := range rule.Ports {
			if !has[p.Port.StrVal] || p.Port.StrVal == "debug" && len(rule.From) == 0 {
				t.Errorf(
					"the NetworkPolicy opens %s, which the pod does not have or which must not be open to everybody",
					p.Port.StrVal)
			}
		}
	}
}

// checkSelectors checks that every object selects the pods of the Deployment, and that
// there are at least two.
func checkSelectors(t *testing.T, c *manifests) {
	labels := c.deployment.Spec.Template.Labels
	selectors := map[string]map[string]string{
		"Deployment":          c.deployment.Spec.Selector.MatchLabels,
		"PodDisruptionBudget": c.budget.Spec.Selector.MatchLabels,
		"NetworkPolicy":       c.network.Spec.PodSelector.MatchLabels,
	}
	for _, s := range c.services {
		selectors["Service "+s.Name] = s.Spec.Selector
	}
	for object, selector := range selectors {
		if len(selector) == 0 {
			t.Errorf("%s has no selector, so it selects all pods", object)
		}
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s selects %s=%s, but the pods have the labels %v", object, key, value, labels)
			}
		}
	}
	replicas := c.deployment.Spec.Replicas
	if c.scaler.Name != "" {
		if ref := c.scaler.Spec.ScaleTargetRef; ref.Kind != "Deployment" || ref.Name != c.deployment.Name {
			t.Errorf("the HorizontalPodAutoscaler scales %s %s, want the Deployment", ref.Kind, ref.Name)
		}
		if replicas != nil {
			t.Error("the Deployment has a number of replicas, to which each update of it would return")
		}
		replicas = c.scaler.Spec.MinReplicas
	}
	if single := c.isSingle(); single && *replicas != 1 || !single && *replicas < 2 {
		t.Errorf("%d replicas, want 1 with a file, and else 2 or more: a single pod cannot be replaced without an outage", *replicas)
	}
}

// isTestPod reports whether a NetworkPolicy means the pod of helm test.
func (c *manifests) isTestPod(peer networking.NetworkPolicyPeer) bool {
	if peer.PodSelector == nil || peer.NamespaceSelector != nil {
		return false
	}
	for key, value := range peer.PodSelector.MatchLabels {
		if c.testPod.Labels[key] != value {
			return false
		}
	}
	return true
}

// isScraped reports whether a Service is only for Prometheus: a ServiceMonitor selects it, it has no
// address of its own, and a NetworkPolicy restricts who connects to the pods.
func (c *manifests) isScraped(s core.Service) bool {
	selected := c.monitor.Name != "" && s.Spec.ClusterIP == core.ClusterIPNone && c.network.Name != ""
	for key, value := range c.monitor.Spec.Selector.MatchLabels {
		selected = selected && s.Labels[key] == value
	}
	return selected && c.monitor.Spec.Endpoints[0].Port == s.Spec.Ports[0].Name
}

// checkRoutes checks that an Ingress and routes lead to Services and ports that exist, and
// that a ServiceMonitor selects one Service.
func checkRoutes(t *testing.T, c *manifests) {
	has := map[string]bool{}
	scraped := 0
	for _, s := range c.services {
		for _, p := range s.Spec.Ports {
			has[s.Name+" "+p.Name] = true
			has[s.Name+" "+strconv.Itoa(int(p.Port))] = true
		}
		if c.isScraped(s) {
			scraped++
		}
	}
	if (scraped == 1) != (c.monitor.Name != "") {
		t.Errorf("the ServiceMonitor %q selects %d Services", c.monitor.Name, scraped)
	}
	var backends []string
	for _, r := range c.ingress.Spec.Rules {
		for _, p := range r.HTTP.Paths {
			backends = append(backends, p.Backend.Service.Name+" "+p.Backend.Service.Port.Name)
		}
	}
	for _, r := range c.httpRoute.Spec.Rules {
		backends = append(backends, string(r.BackendRefs[0].Name)+" "+strconv.Itoa(int(*r.BackendRefs[0].Port)))
	}
	for _, r := range c.grpcRoute.Spec.Rules {
		backends = append(backends, string(r.BackendRefs[0].Name)+" "+strconv.Itoa(int(*r.BackendRefs[0].Port)))
	}
	for _, backend := range backends {
		if !has[backend] {
			t.Errorf("a route leads to %s, which no Service has: %v", backend, has)
		}
	}
}

// checkHooks checks the Job of migrations and the pod of helm test: no Service or policy
// selects them, a finished one is deleted, they are as restricted as the service, and the pods of
// the service apply migrations if and only if no Job does.
func checkHooks(t *testing.T, c *manifests) {
	_, values := c.serviceContainer(t)
	if byJob := c.migration.Name != ""; values["MIGRATE_ON_START"] != strconv.FormatBool(!byJob) {
		t.Errorf("MIGRATE_ON_START is %q, and a Job applies migrations: %v", values["MIGRATE_ON_START"], byJob)
	}
	for _, o := range c.objects {
		if o.Annotations["helm.sh/hook"] != "" && o.Annotations["helm.sh/hook-delete-policy"] != "before-hook-creation,hook-succeeded" {
			t.Errorf("%s %s stays after the hook", o.Kind, o.Name)
		}
	}
	job := c.migration.Spec.Template
	c.checkHookPod(t, job.Labels, job.Spec)
	c.checkHookPod(t, c.testPod.Labels, c.testPod.Spec)
	if c.migration.Name == "" {
		return
	}
	environment := map[string]string{}
	for _, v := range job.Spec.Containers[0].Env {
		if v.Value != "" {
			environment[v.Name] = v.Value
		}
	}
	for _, added := range []string{"TZ", "NODE"} { // extraEnv of a file of values
		delete(environment, added)
	}
	checkEnvironment(t, environment)
	for name, value := range c.configs[c.deployment.Name].Data {
		if environment[name] != value {
			t.Errorf("the Job has %s=%q, and the service %q", name, environment[name], value)
		}
	}
}

// checkHookPod checks the pod of a hook, if there is one.
func (c *manifests) checkHookPod(t *testing.T, labels map[string]string, pod core.PodSpec) {
	t.Helper()
	if len(pod.Containers) == 0 {
		return
	}
	served := c.deployment.Spec.Template.Spec
	if selector := c.deployment.Spec.Selector.MatchLabels; labels["app.kubernetes.io/component"] == selector["app.kubernetes.io/component"] {
		t.Errorf("the labels %v of a hook are those of the service", labels)
	}
	if !reflect.DeepEqual(pod.SecurityContext, served.SecurityContext) || *pod.AutomountServiceAccountToken ||
		!reflect.DeepEqual(pod.Containers[0].SecurityContext, served.Containers[0].SecurityContext) {
		t.Errorf("the pod %v is not as restricted as the service", labels)
	}
	if pod.Containers[0].Image != served.Containers[0].Image || pod.RestartPolicy != core.RestartPolicyNever {
		t.Errorf("the pod %v has another image than the service, or restarts", labels)
	}
	for _, v := range pod.Volumes {
		if !slices.ContainsFunc(served.Volumes, func(other core.Volume) bool { return other.Name == v.Name }) {
			t.Errorf("the service has no volume %s", v.Name)
		}
	}
}

// checkSecrets checks that secrets are in Secrets that exist, and that the chart makes none.
func checkSecrets(t *testing.T, c *manifests) {
	all := knownSettings(t)
	for _, config := range c.configs {
		for name, value := range config.Data {
			if all[name].Secret && (!slices.Contains(addresses, name) || strings.Contains(value, "@")) {
				t.Errorf("the ConfigMap %s has the secret %s", config.Name, name)
			}
		}
	}
	pod := c.deployment.Spec.Template.Spec
	paths := map[string]bool{}
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			for _, item := range v.Secret.Items {
				paths["/run/secrets/tollgate/"+item.Path] = true
			}
			if *v.Secret.DefaultMode != 0o440 {
				t.Errorf("the files of the Secret %s have the mode %o, want 440", v.Secret.SecretName, *v.Secret.DefaultMode)
			}
		}
	}
	for _, v := range pod.Containers[0].Env {
		if secret, is := strings.CutSuffix(v.Name, "_FILE"); is && all[secret].Secret && !paths[v.Value] {
			t.Errorf("%s is %s, which no Secret has", v.Name, v.Value)
		}
	}
}
