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

// cluster is what the manifests make.
type cluster struct {
	deployment apps.Deployment
	configs    map[string]core.ConfigMap
	services   []core.Service
	budget     policy.PodDisruptionBudget
	scaler     autoscaling.HorizontalPodAutoscaler
	network    networking.NetworkPolicy
}

// load reads the manifests into Kubernetes' own types, as its API does: fields that are unknown, repeated or in other case
// are refused.
func load(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{configs: map[string]core.ConfigMap{}}
	files, err := filepath.Glob(filepath.Join(folder, "kubernetes", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		for text := range strings.SplitSeq(read(t, "kubernetes", filepath.Base(file)), "\n---\n") {
			c.add(t, file, text)
		}
	}
	return c
}

func (c *cluster) add(t *testing.T, file, text string) {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	document, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	into := func(object any) {
		strict, err := kjson.UnmarshalStrict(document, object)
		if err := errors.Join(append(strict, err)...); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	switch fmt.Sprint(tree["apiVersion"], " ", tree["kind"]) {
	case "apps/v1 Deployment":
		into(&c.deployment)
	case "v1 ConfigMap":
		var m core.ConfigMap
		into(&m)
		c.configs[m.Name] = m
	case "v1 Service":
		var s core.Service
		into(&s)
		c.services = append(c.services, s)
	case "policy/v1 PodDisruptionBudget":
		into(&c.budget)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		into(&c.scaler)
	case "networking.k8s.io/v1 NetworkPolicy":
		into(&c.network)
	default:
		t.Errorf("%s: unexpected %v %v", file, tree["apiVersion"], tree["kind"])
	}
}

// container returns the service's container and its settings.
func (c *cluster) container(t *testing.T) (core.Container, map[string]string) {
	t.Helper()
	if n := len(c.deployment.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("the pod has %d containers", n)
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

// TestKubernetesPod looks at what runs, and how it ends.
func TestKubernetesPod(t *testing.T) {
	c := load(t)
	pod := c.deployment.Spec.Template.Spec
	container, values := c.container(t)
	checkEnvironment(t, values)
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace <= shutdown(t, values) {
		t.Errorf("a pod is killed after %v, and may need %v", grace, shutdown(t, values))
	}
	s := container.SecurityContext
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || *pod.AutomountServiceAccountToken ||
		pod.SecurityContext.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault ||
		*s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
		t.Error("the pod may do more than it needs")
	}
	for probe, path := range map[*core.Probe]string{
		container.LivenessProbe: "/health", container.StartupProbe: "/health", container.ReadinessProbe: "/ready",
	} {
		if probe.HTTPGet.Path != path || probe.HTTPGet.Port.StrVal != "api" {
			t.Errorf("a probe asks %v, want %s", probe.HTTPGet, path)
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
			t.Errorf("there is no ConfigMap %s", v.ConfigMap.Name)
		}
	}
	if len(mounted) > 0 {
		t.Errorf("there are no volumes for %v", mounted)
	}
}

// TestKubernetesRollout wants a rollout in which no request fails: a new pod before an old one goes, and nobody who still
// sends to a pod when its listeners close.
func TestKubernetesRollout(t *testing.T) {
	c := load(t)
	container, values := c.container(t)
	spec := c.deployment.Spec
	if r := spec.Strategy.RollingUpdate; r.MaxUnavailable.IntValue() != 0 || r.MaxSurge.IntValue() < 1 {
		t.Errorf("a rollout takes %s pods before there are %s new ones", r.MaxUnavailable, r.MaxSurge)
	}
	drain, err := time.ParseDuration(values["SHUTDOWN_DRAIN"])
	if err != nil {
		t.Fatal(err)
	}
	p := container.ReadinessProbe
	if noticed := time.Duration(p.PeriodSeconds*p.FailureThreshold+p.TimeoutSeconds) * time.Second; noticed >= drain {
		t.Errorf("that a pod goes may be noticed after %v, and it answers for %v", noticed, drain)
	}
	if spec.MinReadySeconds == 0 {
		t.Error("an old pod goes before clients have found the new one")
	}
}

// TestKubernetesPorts wants every port that is spoken of to be one of the pod, and those to be the service's.
func TestKubernetesPorts(t *testing.T) {
	c := load(t)
	container, _ := c.container(t)
	settings := map[string]string{"api": "PORT", "limit-http": "RATELIMIT_HTTP_PORT", "limit-grpc": "GRPC_PORT", "debug": "DEBUG_PORT"}
	has := map[string]bool{}
	for _, p := range container.Ports {
		has[p.Name] = true
		if want := known(t)[settings[p.Name]].Default; want != strconv.Itoa(int(p.ContainerPort)) {
			t.Errorf("port %s is %d, the service's is %s", p.Name, p.ContainerPort, want)
		}
	}
	for _, s := range c.services {
		for _, p := range s.Spec.Ports {
			if !has[p.TargetPort.StrVal] {
				t.Errorf("the Service %s leads to a port %s", s.Name, p.TargetPort.StrVal)
			}
			if p.TargetPort.StrVal == "debug" {
				t.Errorf("the Service %s shows the debug listener", s.Name)
			}
		}
	}
	for _, rule := range c.network.Spec.Ingress {
		for _, p := range rule.Ports {
			if !has[p.Port.StrVal] || p.Port.StrVal == "debug" && len(rule.From) == 0 {
				t.Errorf("the NetworkPolicy lets everybody to %s", p.Port.StrVal)
			}
		}
	}
}

// TestKubernetesSelectors wants every object to mean the pods of the Deployment.
func TestKubernetesSelectors(t *testing.T) {
	c := load(t)
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
			t.Errorf("%s selects everything", object)
		}
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s selects %s=%s, pods have %v", object, key, value, labels)
			}
		}
	}
	if ref := c.scaler.Spec.ScaleTargetRef; ref.Kind != "Deployment" || ref.Name != c.deployment.Name {
		t.Errorf("the HorizontalPodAutoscaler scales %s %s", ref.Kind, ref.Name)
	}
	if *c.scaler.Spec.MinReplicas < 2 || *c.deployment.Spec.Replicas < 2 {
		t.Error("a single pod cannot be replaced without a gap")
	}
}
