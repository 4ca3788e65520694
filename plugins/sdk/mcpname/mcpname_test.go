package mcpname_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/plugins/sdk/mcpname"
)

const name = "com.example/weather"

func TestClaims(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"mcp-name: com.example/weather":                               true,
		"# Weather\n\n<!-- mcp-name: com.example/weather -->\n":       true,
		"<p><code>mcp-name: com.example/weather</code></p>":           true,
		"mcp-name:com.example/weather":                                true,
		"mcp-name: \t com.example/weather, and more":                  true,
		"mcp-name: com.example/rain\nmcp-name: com.example/weather\n": true,
		"mcp-name: mcp-name: com.example/weather":                     true,
		"":                                  false,
		"com.example/weather":               false,
		"mcp-name: com.example/weather-pro": false,
		"mcp-name: com.example/weather.":    false,
		"mcp-name: com.example/weather/x":   false,
		"mcp-name: com.example/weather_2":   false,
		"mcp-name: com.example/Weather":     false,
		"mcp-name: x.com.example/weather":   false,
		"mcp-name: com.example/weathe":      false,
		"mcp-name:\ncom.example/weather":    false,
		"MCP-Name: com.example/weather":     false,
		"mcp-name com.example/weather":      false,
	} {
		if got := mcpname.Claims(text, name); got != want {
			t.Errorf("Claims(%q) = %t, want %t", text, got, want)
		}
	}
	if mcpname.Claims("mcp-name: ", "") {
		t.Error("Claims reports a claim of the empty name")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	text := "mcp-name: a/1 mcp-name: mcp-name: " + strings.Repeat("b", 201) +
		" mcp-name: c/2\nmcp-name: d/3, mcp-name: e/4"
	if got := mcpname.Names(text); !slices.Equal(got, []string{"a/1", "mcp-name", "c/2"}) {
		t.Errorf("Names = %q", got)
	}
	if got := mcpname.Names("no claim"); got != nil {
		t.Errorf("Names = %q, want nil", got)
	}
}

func TestANameMustEndToClaim(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringMatching(`[^m]*`).Draw(t, "before")
		after := rapid.String().Draw(t, "after")
		inName := after != "" &&
			strings.ContainsAny(after[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/")
		got := mcpname.Claims(before+"mcp-name: "+name+after, name)
		if !inName && !got {
			t.Errorf("claim followed by %q is not found", after)
		}
		if inName && got && !strings.Contains(after, name) {
			t.Errorf("claim followed by %q is found", after)
		}
	})
}

func TestCheckSaysWhatToPublish(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"mcp-name: com.example/weather": "",
		"no claim":                      `the readme does not claim the server: publish a version in which it contains "mcp-name: com.example/weather"`,
		"mcp-name: com.example/rain":    `the readme claims "com.example/rain": publish a version in which it contains "mcp-name: com.example/weather"`,
	} {
		err := mcpname.Check(text, name, "the readme")
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("Check(%q) = %v, want %q", text, err, want)
		}
	}
}
