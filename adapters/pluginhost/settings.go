package pluginhost

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"google.golang.org/grpc"

	"github.com/tollgate-dev/tollgate/plugins/pluginclient"
	"github.com/tollgate-dev/tollgate/plugins/sdk/handshake"
)

// settingName matches a name that a plugin may declare.
var settingName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// documentEnd ends the name of the variable that has settings of a plugin as a YAML document.
const documentEnd = "SETTINGS"

// knownPrefix has the plugins that come with the service whose settings begin in another way too.
var knownPrefix = map[string]string{"otp-email": "SMTP_", "otp-sms": "SMS_", DevelopmentCourier: "NOTICE_LOG_"}

// ownPrefix returns how the settings of a plugin begin: with its kind and its name.
func ownPrefix(name string, kind pluginclient.Kind) string {
	if _, has := kindFromName(name); !has {
		name = map[pluginclient.Kind]string{pluginclient.Courier: "otp-", pluginclient.Ownership: ownershipPrefix}[kind] + name
	}
	return strings.NewReplacer("-", "_", ".", "_").Replace(strings.ToUpper(name)) + "_"
}

// owners are the beginnings of settings by plugin: of those that are installed, and of those that
// come with the service, also if they are not.
type owners map[string][]string

func ownersOf(specs []spec) owners {
	o := owners{}
	for name, prefix := range knownPrefix {
		o[name] = []string{ownPrefix(name, pluginclient.Courier), prefix}
	}
	for _, s := range specs {
		o[s.name] = append(o[s.name], ownPrefix(s.name, s.kind))
	}
	return o
}

// match returns the length of the longest beginning of a plugin that a variable has.
func (o owners) match(plugin, variable string) (n int) {
	for _, prefix := range o[plugin] {
		if strings.HasPrefix(variable, prefix) {
			n = max(n, len(prefix))
		}
	}
	return n
}

// owns reports whether a variable belongs to a plugin: its beginning for the plugin is longer than
// those for all others, so that no plugin can declare the secret of another.
func (o owners) owns(plugin, variable string) bool {
	n := o.match(plugin, variable)
	for other := range o {
		if other != plugin && o.match(other, variable) >= n {
			return false
		}
	}
	return n > 0
}

// configure gives the plugin at conn the values of the settings that it declares. It returns
// [pluginclient.SettingsError] if one of them is wrong.
func (s spec) configure(ctx context.Context, conn grpc.ClientConnInterface, cfg Config) error {
	declared, err := pluginclient.Settings(ctx, conn)
	if err != nil {
		return err
	}
	if err := s.checkDeclared(declared, cfg); err != nil {
		return err
	}
	values, document, err := s.values(declared, cfg)
	if err != nil {
		return pluginclient.SettingsError(err.Error())
	}
	err = pluginclient.Configure(ctx, conn, values)
	var wrong pluginclient.SettingsError
	if name, _, _ := strings.Cut(fmt.Sprint(err), ":"); document[name] != "" && errors.As(err, &wrong) {
		return pluginclient.SettingsError(s.document() + ": " + err.Error())
	}
	return err
}

// checkDeclared returns an error for a setting that is not the plugin's own. A plugin must not get
// the secrets of the service, or of another plugin, or of the machine by declaring them.
func (s spec) checkDeclared(declared []handshake.Setting, cfg Config) error {
	for _, d := range declared {
		_, shared := cfg.Shared[d.Name]
		switch {
		case shared:
		case len(d.Name) > handshake.MaxSettings || !settingName.MatchString(d.Name):
			return fmt.Errorf("the plugin declares a setting whose name is not of 1 to %d capital letters, digits and underscores",
				handshake.MaxSettings)
		case !s.owners.owns(s.name, d.Name) || d.Name == s.document():
			return fmt.Errorf("the plugin declares the setting %s, which is not its own: it must begin with %s", d.Name,
				ownPrefix(s.name, s.kind))
		}
	}
	return nil
}

// document is the variable that has the plugin's settings as YAML.
func (s spec) document() string { return ownPrefix(s.name, s.kind) + documentEnd }

// values returns the values of settings: those of the manifest and of the host, or those of the
// service's environment and of the document, of which only one may have a setting. document has what
// came from there.
func (s spec) values(declared []handshake.Setting, cfg Config) (values, document map[string]string, err error) {
	given := map[string]string{}
	for _, pair := range s.env {
		name, value, _ := strings.Cut(pair, "=")
		given[name] = value
	}
	text, err := cfg.variable(s.document(), true)
	if err != nil {
		return nil, nil, err
	}
	if document, err = parseDocument(text); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.document(), err)
	}
	values = map[string]string{}
	for _, d := range declared {
		value := cmp.Or(given[d.Name], cfg.Shared[d.Name])
		if value == "" {
			if value, err = cfg.variable(d.Name, d.Secret); err != nil {
				return nil, nil, err
			}
			if value != "" && document[d.Name] != "" {
				return nil, nil, fmt.Errorf("%s: it is set, and in %s too: set it only once", d.Name, s.document())
			}
		}
		if value = cmp.Or(value, document[d.Name]); value != "" {
			values[d.Name] = value
		}
	}
	for _, key := range slices.Sorted(maps.Keys(document)) {
		_, shared := cfg.Shared[key]
		if shared || !slices.ContainsFunc(declared, func(d handshake.Setting) bool { return d.Name == key }) {
			return nil, nil, fmt.Errorf("%s: %s: unknown key", s.document(), key)
		}
	}
	return values, document, nil
}

// variable returns the value of a variable of the service's environment; empty if it is not set.
func (c Config) variable(name string, secret bool) (string, error) {
	if c.Variable == nil {
		return "", nil
	}
	value, err := c.Variable(name, secret)
	// platforms of containers set SMTP_PORT=tcp://… for another service with the name smtp
	if strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://") {
		return "", err
	}
	return value, err
}

// parseDocument returns the values of a document by their keys. A value may be a list or a map where
// the setting is JSON. An error does not show the document, which has secrets.
func parseDocument(document string) (map[string]string, error) {
	var nodes map[string]yaml.Node
	if yaml.Unmarshal([]byte(document), &nodes) != nil {
		return nil, errors.New("it is not YAML of keys with a value each")
	}
	values := map[string]string{}
	for key, node := range nodes {
		switch {
		case node.ShortTag() == "!!null": // as a variable without a value
			continue
		case node.Kind == yaml.ScalarNode:
			values[key] = node.Value
			continue
		}
		var value any
		err := node.Decode(&value)
		encoded, wrong := json.Marshal(value)
		if err != nil || wrong != nil {
			return nil, fmt.Errorf("%s: it cannot be written as JSON", key)
		}
		values[key] = string(encoded)
	}
	return values, nil
}
