package person

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/adapters/toollist"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/allowlist"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// keptVariables are those of this process that a package gets, too: without them its program does not start.
var keptVariables = []string{"PATH", "HOME", "TMPDIR", "TMP", "TEMP", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA"}

// newProgram returns how clients start the package. Its document comes from the service.
func (r *toolsRun) newProgram(ctx context.Context, s *Service, named map[string]string) (p toollist.Program, err error) {
	var answer struct {
		Server json.RawMessage `json:"server"`
	}
	path := "/v0.1/servers/" + url.PathEscape(r.name) + "/versions/" + url.PathEscape(r.version)
	if err := s.CallReader(ctx, tollgateclient.Request{Method: http.MethodGet, Path: path}, &answer); err != nil {
		return p, nameSubject(r.name+"@"+r.version, err)
	}
	if _, err := tools.FindPart(answer.Server, tools.Place{Package: r.index}); err != nil {
		return p, err
	}
	name, err := registry.ParseName(r.name)
	if err != nil {
		return p, err
	}
	record := registry.Record{Release: registry.Release{Name: name}, Document: answer.Server}
	offer := "package-" + strconv.Itoa(r.index+1)
	snippet, err := allowlist.ParseInstall(record).SnippetOf(allowlist.ClientClaude, offer)
	if err != nil {
		return p, err
	}
	p = toollist.Program{Name: "package " + strconv.Itoa(r.index), Timeout: toollist.PackageTimeout, Environ: r.environ(named)}
	p.Command, err = fillCommand(snippet.Definition.Package.Command, named)
	return p, err
}

// environ returns all variables that a package gets.
func (r *toolsRun) environ(named map[string]string) (all []string) {
	for _, name := range keptVariables {
		if value := r.Getenv(name); value != "" && named[name] == "" {
			all = append(all, name+"="+value)
		}
	}
	for name, value := range named {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}

// fillCommand returns a command with the named values in the place of its references, ${NAME} and ${NAME:-}; its
// document cannot have others. It returns fault.Invalid for a value that is needed, and not named.
func fillCommand(command []string, named map[string]string) ([]string, error) {
	filled, missing := make([]string, len(command)), ""
	for i, word := range command {
		filled[i] = os.Expand(word, func(reference string) string {
			name, optional := strings.CutSuffix(reference, ":-")
			if named[name] == "" && !optional {
				missing = name
			}
			return named[name]
		})
	}
	if missing != "" {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("the package needs a value in its command: give it with --env %s", missing))
	}
	return filled, nil
}
