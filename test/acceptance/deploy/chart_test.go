package deploy

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/tollgate-dev/tollgate/test/must"
)

var update = flag.Bool("update", false, "write deploy/kubernetes and the settings in values.schema.json")

var chartFolder = filepath.Join(deployFolder, "helm", "tollgate")

// valueFiles returns the files of values with which the chart is rendered, by name: those of
// testdata, and those from which deploy/kubernetes is made.
func valueFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{"manifests": filepath.Join(deployFolder, "helm", "postgresql.yaml")}
	found, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(found) != 6 {
		t.Fatalf("%d files of values, want 6: %v", len(found), err)
	}
	for _, file := range found {
		files[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return files
}

// readValues reads a file of values; without a file there are none.
func readValues(t *testing.T, file string) map[string]any {
	t.Helper()
	if file == "" {
		return nil
	}
	values, err := common.ReadValuesFile(file)
	must.Succeed(t, err)
	return values
}

// renderChart returns what the chart makes of values, by the name of the template. The manager is
// the program that applies it.
func renderChart(t *testing.T, values map[string]any, release, manager string) map[string]string {
	t.Helper()
	c, err := loader.LoadDir(chartFolder)
	must.Succeed(t, err)
	options := common.ReleaseOptions{Name: release, Namespace: "tools", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, nil)
	must.Succeed(t, err)
	all["Release"].(map[string]any)["Service"] = manager
	texts, err := engine.Engine{Strict: true}.RenderWithContext(t.Context(), c, all)
	must.Succeed(t, err)
	rendered := map[string]string{}
	for name, text := range texts {
		name = strings.TrimPrefix(name, "tollgate/templates/")
		if text = trimLines(text); text != "" && !strings.HasPrefix(name, "_") {
			rendered[name] = text
		}
	}
	return rendered
}

// trimLines removes empty lines and the blanks at the end of lines, which templates leave.
func trimLines(text string) string {
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line != "" {
			kept.WriteString(line + "\n")
		}
	}
	return strings.TrimPrefix(kept.String(), "---\n")
}

// TestChartIsCurrent checks that the schema of the chart's values has the settings of the service,
// and that deploy/kubernetes is what the chart makes; with -update it writes both.
func TestChartIsCurrent(t *testing.T) {
	schema := filepath.Join(chartFolder, "values.schema.json")
	files := map[string]string{schema: currentSchema(t, schema)}
	if *update { // the schema decides about the values from which the manifests are made
		writeFile(t, schema, files[schema])
	}
	values := readValues(t, valueFiles(t)["manifests"])
	// Without Helm there are no hooks: the first pod that starts applies migrations.
	values["migration"] = map[string]any{"enabled": false}
	folder := filepath.Join(deployFolder, "kubernetes")
	for name, text := range renderChart(t, values, "tollgate", "kubectl") {
		if strings.HasSuffix(name, ".yaml") && !strings.HasPrefix(name, "tests/") {
			files[filepath.Join(folder, name)] = "# Made from deploy/helm/tollgate with deploy/helm/postgresql.yaml by make generate.\n" + text
		}
	}
	present, err := filepath.Glob(filepath.Join(folder, "*"))
	must.Succeed(t, err)
	for _, file := range present {
		if _, made := files[file]; !made {
			t.Errorf("%s is not made from the chart", file)
		}
	}
	for file, want := range files {
		if *update {
			writeFile(t, file, want)
		} else if text, err := os.ReadFile(file); err != nil || string(text) != want {
			t.Errorf("%s is not current: run 'make generate' (%v)", file, err)
		}
	}
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	must.Succeed(t, os.WriteFile(file, []byte(text), 0o644))
}

// setByChart are the settings that templates set, so that they are not in config.
var setByChart = []string{
	"HOST", "PORT", "GRPC_HOST", "GRPC_PORT", "GRPC_UDS", "RATELIMIT_HTTP_HOST", "RATELIMIT_HTTP_PORT", "DEBUG_HOST",
	"DEBUG_PORT", "DATA_DIR", "SIGNING_KEYS_DIR", "PLUGIN_DIR", "MIGRATE_ON_START", "TLS_CERT", "TLS_KEY",
}

// addresses are the secret settings that are not secret without a password in them.
var addresses = []string{"KVSTORE_URL", "KVSTORE_PERSECOND_URL", "HTTPS_PROXY"}

// currentSchema returns the schema of the chart's values with the settings as they are now: in
// config those that are not secret, in secrets.keys the others.
func currentSchema(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must.Succeed(t, err)
	var schema map[string]any
	must.Succeed(t, json.Unmarshal(text, &schema))
	forms := map[string]string{
		"true or false": "boolean", "a duration, for example 500ms, 10s or 24h": "duration", "a number": "number",
		"a whole number": "wholeNumber", "a whole number, not negative": "wholeNumber",
	}
	public, secret := map[string]any{"GOMEMLIMIT": reference("memory")}, map[string]any{}
	for name, v := range knownSettings(t) {
		if v.Secret {
			secret[name] = reference("secretKey")
		}
		switch form, has := forms[v.Form]; {
		case slices.Contains(setByChart, name):
		case slices.Contains(addresses, name):
			public[name] = reference("textWithoutPassword")
		case v.Secret:
		case has:
			public[name] = reference(form)
		default:
			public[name] = reference("text")
		}
	}
	definitions := schema["$defs"].(map[string]any)
	definitions["settings"] = map[string]any{
		"type": "object", "additionalProperties": false, "properties": public,
		"patternProperties": map[string]any{
			"^TAGGED_METRICSD_MOGRIFIER_[A-Z0-9_]+_(PATTERN|NAME|TAGS)$": reference("text"), otherPlugins: reference("text"),
		},
	}
	definitions["secretSettings"] = map[string]any{
		"type": "object", "additionalProperties": false, "properties": secret,
		"patternProperties": map[string]any{otherPlugins: reference("secretKey")},
	}
	var current strings.Builder
	encoder := json.NewEncoder(&current)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	must.Succeed(t, encoder.Encode(schema))
	return current.String()
}

// otherPlugins matches settings of plugins that do not come with the service: OTP_NAME_… and PKG_NAME_….
const otherPlugins = "^(OTP|PKG)_[A-Z0-9]+_[A-Z0-9_]+$"

func reference(definition string) map[string]any {
	return map[string]any{"$ref": "#/$defs/" + definition}
}

// TestChartLint runs helm lint without values and with each file of values.
func TestChartLint(t *testing.T) {
	files := valueFiles(t)
	files["default"] = ""
	for name, file := range files {
		for _, m := range lint.RunAll(chartFolder, readValues(t, file), "tools").Messages {
			if m.Severity >= support.WarningSev {
				t.Errorf("%s: %s: %v", name, m.Path, m.Err)
			}
		}
	}
}

// TestChartRefusesValues checks that the schema refuses each wrong file of values, with the message
// of its first line, which has the path of the value.
func TestChartRefusesValues(t *testing.T) {
	c, err := loader.LoadDir(chartFolder)
	must.Succeed(t, err)
	files, err := filepath.Glob("testdata/refused/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files of wrong values, want 10 or more: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.Succeed(t, err)
		line, _, _ := strings.Cut(string(text), "\n")
		_, err = util.ToRenderValues(c, readValues(t, file), common.ReleaseOptions{Name: "tollgate"}, nil)
		if want := strings.TrimPrefix(line, "# "); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", file, err, want)
		}
	}
}

// TestChartValuesHaveComments checks that each value of the chart has a comment of its own or is
// below one that has.
func TestChartValuesHaveComments(t *testing.T) {
	var document yaml.Node
	must.Succeed(t, yaml.Unmarshal([]byte(readDeployFile(t, "helm", "tollgate", "values.yaml")), &document))
	var check func(path string, values *yaml.Node)
	check = func(path string, values *yaml.Node) {
		for i := 0; i < len(values.Content); i += 2 {
			key, value := values.Content[i], values.Content[i+1]
			if key.HeadComment == "" && value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 {
				check(path+"/"+key.Value, value)
			} else if key.HeadComment == "" {
				t.Errorf("%s/%s has no comment", path, key.Value)
			}
		}
	}
	check("", document.Content[0])
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestChartExample checks that the chart accepts the values of the documentation.
func TestChartExample(t *testing.T) {
	example := yamlBlock.FindStringSubmatch(readDeployFile(t, "..", "docs", "kubernetes.md"))
	if example == nil {
		t.Fatal("docs/kubernetes.md has no values")
	}
	own, err := common.ReadValues([]byte(example[1]))
	must.Succeed(t, err)
	values := util.CoalesceTables(own, readValues(t, valueFiles(t)["manifests"]))
	c := newManifests(t, renderChart(t, values, "tollgate", "Helm"))
	if c.ingress.Name == "" || c.migration.Name == "" || c.configs["tollgate"].Data["PUBLIC_URL"] != "https://tollgate.example.com" {
		t.Errorf("the example has no ingress, no migration or not its address: %v", c.configs)
	}
}

// TestChartPublicURL checks that the service knows the address that browsers use: that of the
// settings, or else the first host.
func TestChartPublicURL(t *testing.T) {
	for name, want := range map[string]string{
		"sqlite": "", "ingress": "https://tools.example.com", "gateway": "https://tools.example.com", "everything": "https://tools.example.com",
	} {
		m := newManifests(t, renderChart(t, readValues(t, valueFiles(t)[name]), "tollgate", "Helm"))
		if got := m.configs[m.deployment.Name].Data["PUBLIC_URL"]; got != want {
			t.Errorf("%s: PUBLIC_URL is %q, want %q", name, got, want)
		}
	}
}

// TestChartNotes checks that the text after an installation says how to get the setup address.
func TestChartNotes(t *testing.T) {
	for name, file := range valueFiles(t) {
		notes := renderChart(t, readValues(t, file), "tollgate", "Helm")["NOTES.txt"]
		if !strings.Contains(notes, installedPath+" setup-link\n") {
			t.Errorf("%s: the notes have no command for the setup address:\n%s", name, notes)
		}
		if hosted := name == "ingress" || name == "gateway" || name == "everything"; strings.Contains(notes, "port-forward") == hosted {
			t.Errorf("%s: the notes are for a service without an address: %v:\n%s", name, !hosted, notes)
		}
	}
}

var labelValue = regexp.MustCompile(`^([A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?)?$`)

// TestChartNames checks names and labels with the longest name of a release that Helm accepts.
func TestChartNames(t *testing.T) {
	release := strings.Repeat("a-long-release-name-", 3)[:53]
	m := newManifests(t, renderChart(t, readValues(t, valueFiles(t)["everything"]), release, "Helm"))
	seen := map[string]bool{}
	for _, o := range m.objects {
		if len(o.Name) > 63 || strings.HasSuffix(o.Name, "-") || seen[o.Kind+o.Name] {
			t.Errorf("%s %s: the name is too long, or not valid, or another object has it", o.Kind, o.Name)
		}
		seen[o.Kind+o.Name] = true
		for key, value := range o.Labels {
			if len(value) > 63 || !labelValue.MatchString(value) {
				t.Errorf("%s %s: the label %s is %q", o.Kind, o.Name, key, value)
			}
		}
	}
}

// TestChartUpgrade checks that an upgrade between any two files of values changes nothing that
// Kubernetes refuses to change.
func TestChartUpgrade(t *testing.T) {
	files := valueFiles(t)
	delete(files, "everything") // its nameOverride is for another release
	fixed := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		m := newManifests(t, renderChart(t, readValues(t, files[name]), "tollgate", "Helm"))
		parts := map[string]any{"selector of the Deployment": m.deployment.Spec.Selector}
		for _, s := range m.services {
			parts["selector of the Service "+s.Name] = s.Spec.Selector
			parts["address of the Service "+s.Name] = s.Spec.ClusterIP
		}
		for part, value := range parts {
			text, err := json.Marshal(value)
			must.Succeed(t, err)
			if before, has := fixed[part]; has && before != string(text) {
				t.Errorf("%s: the %s is %s, and %s with other values", name, part, text, before)
			}
			fixed[part] = string(text)
		}
	}
}
