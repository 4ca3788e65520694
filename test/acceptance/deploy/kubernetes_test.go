package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	kjson "sigs.k8s.io/json"
)

// manifests are the Kubernetes objects of deploy/kubernetes.
type manifests struct {
	deployment apps.Deployment
	configs    map[string]core.ConfigMap
	services   []core.Service
	budget     policy.PodDisruptionBudget
	scaler     autoscaling.HorizontalPodAutoscaler
	network    networking.NetworkPolicy
}

// loadManifests parses the manifests into Kubernetes' own types as the API server does: it rejects
// fields that are unknown or repeated, or that differ in case.
func loadManifests(t *testing.T) *manifests {
	t.Helper()
	c := &manifests{configs: map[string]core.ConfigMap{}}
	files, err := filepath.Glob(filepath.Join(deployFolder, "kubernetes", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		for text := range strings.SplitSeq(readDeployFile(t, "kubernetes", filepath.Base(file)), "\n---\n") {
			c.addObject(t, file, text)
		}
	}
	return c
}

// addObject parses one YAML document and stores it in the field of its kind.
func (c *manifests) addObject(t *testing.T, file, text string) {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	document, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	decodeInto := func(object any) {
		strict, err := kjson.UnmarshalStrict(document, object)
		if err := errors.Join(append(strict, err)...); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	switch fmt.Sprint(tree["apiVersion"], " ", tree["kind"]) {
	case "apps/v1 Deployment":
		decodeInto(&c.deployment)
	case "v1 ConfigMap":
		var m core.ConfigMap
		decodeInto(&m)
		c.configs[m.Name] = m
	case "v1 Service":
		var s core.Service
		decodeInto(&s)
		c.services = append(c.services, s)
	case "policy/v1 PodDisruptionBudget":
		decodeInto(&c.budget)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		decodeInto(&c.scaler)
	case "networking.k8s.io/v1 NetworkPolicy":
		decodeInto(&c.network)
	default:
		t.Errorf("%s: unexpected %v %v", file, tree["apiVersion"], tree["kind"])
	}
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
		values[v.Name] = v.Value
	}
	return container, values
}

// TestKubernetesPod checks the pod's settings, grace period, privileges, probes and volumes.
func TestKubernetesPod(t *testing.T) {
	c := loadManifests(t)
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
		if v.ConfigMap != nil && c.configs[v.ConfigMap.Name].Name == "" {
			t.Errorf("the ConfigMap %s is not defined", v.ConfigMap.Name)
		}
	}
	if len(mounted) > 0 {
		t.Errorf("these mounts have no volume: %v", mounted)
	}
}

// TestKubernetesRollout checks that no request fails during a rollout: a new pod is ready before an
// old one ends, and clients stop sending requests to a pod before it closes its listeners.
func TestKubernetesRollout(t *testing.T) {
	c := loadManifests(t)
	container, values := c.serviceContainer(t)
	spec := c.deployment.Spec
	if r := spec.Strategy.RollingUpdate; r.MaxUnavailable.IntValue() != 0 || r.MaxSurge.IntValue() < 1 {
		t.Errorf("maxUnavailable is %s and maxSurge is %s, want 0 and at least 1", r.MaxUnavailable, r.MaxSurge)
	}
	drain, err := time.ParseDuration(values["SHUTDOWN_DRAIN"])
	if err != nil {
		t.Fatal(err)
	}
	p := container.ReadinessProbe
	if detected := time.Duration(p.PeriodSeconds*p.FailureThreshold+p.TimeoutSeconds) * time.Second; detected >= drain {
		t.Errorf("the readiness probe may need %v to detect that a pod drains, want less than SHUTDOWN_DRAIN (%v)",
			detected, drain)
	}
	if spec.MinReadySeconds == 0 {
		t.Error("minReadySeconds is 0: an old pod may end before clients have found the new one")
	}
}

// TestKubernetesPorts checks that the pod's ports are the defaults of the service, that every
// Service and NetworkPolicy uses only these ports, and that the debug port is not open to
// everybody.
func TestKubernetesPorts(t *testing.T) {
	c := loadManifests(t)
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
			if p.TargetPort.StrVal == "debug" {
				t.Errorf("the Service %s exposes the debug listener", s.Name)
			}
		}
	}
	for _, rule := range c.network.Spec.Ingress {
		for _, p := range rule.Ports {
			if !has[p.Port.StrVal] || p.Port.StrVal == "debug" && len(rule.From) == 0 {
				t.Errorf(
					"the NetworkPolicy opens %s, which the pod does not have or which must not be open to everybody",
					p.Port.StrVal)
			}
		}
	}
}

// TestKubernetesSelectors checks that every object selects the pods of the Deployment, and that
// there are at least two.
func TestKubernetesSelectors(t *testing.T) {
	c := loadManifests(t)
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
	if ref := c.scaler.Spec.ScaleTargetRef; ref.Kind != "Deployment" || ref.Name != c.deployment.Name {
		t.Errorf("the HorizontalPodAutoscaler scales %s %s, want the Deployment", ref.Kind, ref.Name)
	}
	if *c.scaler.Spec.MinReplicas < 2 || *c.deployment.Spec.Replicas < 2 {
		t.Error("want at least 2 replicas: a single pod cannot be replaced without an outage")
	}
}
