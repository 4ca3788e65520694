package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tollgate-dev/tollgate/adapters/tollgateclient"
	"github.com/tollgate-dev/tollgate/cmd/tollgate/cli"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/kinds"
)

// This file has the commands of the objects of any kind, by the description of its fields.

// kindTexts are what the commands of a kind have besides its description. Texts that are missing are
// made of the name of the kind.
type kindTexts struct {
	path, short, one, example string         // such as "access rule", "Manage rules", "a rule", "readers"
	put, list, show, remove   *cobra.Command // one that runs already is complete

	add    bool // objects are added, and not changed or shown
	revise bool // fields whose flags are not given stay, and one object is no list in JSON
	first  bool // the first object makes a missing database
	state  any  // a struct with what else the API knows of an object; nil for its owner
	// flatten moves members of an object of the API to its top, and added is called with a new object;
	// both are optional.
	flatten, added func(object)
	less           func(a, b object) int // the order of the list; nil for that of the API
}

// object is an object as the API has it.
type object = map[string]any

// owned is what the API knows of an object besides its fields, if it knows no more.
type owned struct {
	ManagedBy string `json:"managedBy" column:"MANAGED BY"`
}

// kindCommands are the commands of a kind.
type kindCommands struct {
	kindTexts

	process cli.Process
	kind    *kinds.Kind
}

func newKind(p cli.Process, k *kinds.Kind, t kindTexts) kindCommands {
	t.path, t.example = cmp.Or(t.path, strings.ReplaceAll(k.Noun(), " ", "-")), cmp.Or(t.example, "example")
	t.one, t.state = cmp.Or(t.one, "a "+strings.ReplaceAll(t.path, "-", " ")), cmp.Or[any](t.state, owned{})
	return kindCommands{t, p, k}
}

// The annotations of the group of commands of a kind: the list of its objects, and the name of the first field.
const (
	kindAnnotation = "tollgate_kind"
	keyAnnotation  = "tollgate_key" // the field with the name of an object
)

// newGroup returns the group of the commands, with others.
func (k kindCommands) newGroup(others ...*cobra.Command) *cobra.Command {
	words := strings.ToLower(k.kind.Title())
	c := cli.NewGroup(k.path[strings.LastIndex(k.path, " ")+1:], cmp.Or(k.short, "Manage "+words), others...)
	c.Annotations = map[string]string{kindAnnotation: k.kind.List, keyAnnotation: k.kind.Fields[0].Name}
	list := k.complete(k.list, 0, "list", "List the "+words, "--output json")
	c.AddCommand(k.newPut(), newTableCommand(k.process, list, func(r run) (cli.Table, error) {
		found, err := listOf[object](r, at(k.kind.Path()), k.kind.List, nil)
		return k.table(found, err)
	}))
	if !k.add {
		show := k.complete(k.show, 1, "show NAME", "Show "+k.one, k.example)
		c.AddCommand(newTableCommand(k.process, show, func(r run) (cli.Table, error) {
			t, err := k.answer(r, tollgateclient.Request{Method: http.MethodGet}, "")
			return t, k.unknown(r, err)
		}))
	}
	remove := k.remove
	if remove == nil || !remove.Runnable() {
		remove = addManaged(k.complete(remove, 1, "remove NAME", "Remove "+k.one, k.example))
		newPlainCommand(k.process, remove, func(r run) error { return k.unknown(r, removed(k.kind.Path())(r)) })
	}
	c.AddCommand(remove)
	return c
}

// unknown replaces a not-found error by one that names the object.
func (k kindCommands) unknown(r run, err error) error {
	return replaceNotFound(err, fmt.Sprintf("there is no %s with the name %.60q", k.kind.Noun(), r.args[0]))
}

// complete gives a command the texts that it does not have, and its number of arguments.
func (k kindCommands) complete(c *cobra.Command, arguments int, use, short, example string) *cobra.Command {
	c = cmp.Or(c, new(cobra.Command))
	c.Use, c.Short, c.Args = cmp.Or(c.Use, use), cmp.Or(c.Short, short), cobra.ExactArgs(arguments)
	c.Example = cmp.Or(c.Example, "  tollgate "+k.path+" "+c.Name()+" "+example)
	return c
}

// newPut returns the command that adds or sets an object.
func (k kindCommands) newPut() *cobra.Command {
	c, use, short := cmp.Or(k.put, new(cobra.Command)), "set NAME", "Add "+k.one+", or change the one with its name"
	if k.add {
		use, short = "add NAME", "Add "+k.one
	} else {
		addManaged(c)
	}
	example, arguments, flags := k.example, []string{}, []func(run, object) error{}
	for i := range k.kind.Fields[1:] {
		f := &k.kind.Fields[1+i]
		text := strings.ToUpper(f.FlagName())
		if f.Usage != "" {
			flags, text = append(flags, k.newFlag(c, f)), "--"+f.FlagName()+" "+text
		} else if f.Required {
			arguments = append(arguments, f.Name)
		}
		if f.Required && f.Default == "" {
			use, example = use+" "+text, example+" "+text
		}
	}
	put := func(r run) (cli.Table, error) {
		given := object{}
		for i, name := range arguments {
			given[name] = r.args[1+i]
		}
		for _, read := range flags {
			if err := read(r, given); err != nil {
				return cli.Table{}, err
			}
		}
		force, _ := c.Flags().GetBool("force") // fails without the flag
		return k.store(r, given, force)
	}
	k.complete(c, 1+len(arguments), use, short, example)
	if k.first {
		return newFirstCommand(k.process, c, put, put)
	}
	return newTableCommand(k.process, c, put)
}

// store puts an object, and returns it as it is then.
func (k kindCommands) store(r run, given object, force bool) (cli.Table, error) {
	q := tollgateclient.Request{Method: http.MethodPut, Body: given}
	switch {
	case k.revise:
		return k.change(r, given, true)
	case k.add:
		q.Header = map[string]string{"If-None-Match": "*"}
	}
	if force {
		q.Query = url.Values{"force": {"true"}}
	}
	return k.answer(r, q, "there is "+k.one+" "+r.args[0]+" already: remove it first")
}

// change puts an object with other values of some fields. If it does not exist, it is made or not.
func (k kindCommands) change(r run, given object, mayMake bool) (cli.Table, error) {
	var tag string
	current, body := object{}, object{}
	err := r.call(tollgateclient.Request{Method: http.MethodGet, Path: at(k.kind.Path(), r.args[0]), Tag: &tag}, &current)
	condition := map[string]string{"If-Match": tag}
	if mayMake && fault.Is(err, fault.NotFound) {
		condition = map[string]string{"If-None-Match": "*"}
	} else if err != nil {
		return cli.Table{}, k.unknown(r, err)
	}
	for i := range k.kind.Fields[1:] {
		name := k.kind.Fields[1+i].Name
		body[name] = current[name]
	}
	maps.Copy(body, given)
	return k.answer(r, tollgateclient.Request{Method: http.MethodPut, Header: condition, Body: body},
		"somebody else has changed "+r.args[0]+" in the meantime: try again")
}

// answer makes a call about an object, and returns the object. stale is the error of a wrong condition.
func (k kindCommands) answer(r run, q tollgateclient.Request, stale string) (cli.Table, error) {
	one := object{}
	q.Path = at(k.kind.Path(), r.args[0])
	err := r.call(q, &one)
	if fault.Is(err, fault.Stale) {
		err = errors.New(stale)
	}
	t, err := k.table([]object{one}, err)
	if err == nil && k.added != nil && q.Method == http.MethodPut {
		k.added(one)
	}
	if err == nil && k.revise {
		t.Value = reflect.ValueOf(t.Value).Index(0).Interface()
	}
	return t, err
}

// table returns objects of the API as a table, unless there is an error.
func (k kindCommands) table(objects []object, err error) (cli.Table, error) {
	if err != nil {
		return cli.Table{}, err
	}
	if k.flatten != nil {
		for _, one := range objects {
			k.flatten(one)
		}
	}
	if k.less != nil {
		slices.SortStableFunc(objects, k.less)
	}
	rows := reflect.New(reflect.SliceOf(rowType(k.kind.Fields, reflect.TypeOf(k.state))))
	text, err := json.Marshal(objects)
	if err == nil {
		err = json.Unmarshal(text, rows.Interface())
	}
	return cli.SliceTable(rows.Elem().Interface()), err
}

// newFlag adds the flag of a field, and returns what sets the field to its value.
func (k kindCommands) newFlag(c *cobra.Command, f *kinds.Field) func(run, object) error {
	if f.Secret && f.Shape == kinds.Text {
		return k.newSecretFlag(c, f)
	}
	if f.Secret && f.Shape == kinds.TextMap {
		return k.newSecretsFlag(c, f)
	}
	name, value, words := f.FlagName(), newValue(c, f), []string{}
	for _, o := range f.Options {
		if o.Value != "" && f.Shape != kinds.Flag {
			words = append(words, o.Value)
		}
	}
	cli.CompleteValues(c, name, words...)
	if f.Required && f.Default == "" {
		cli.RequireFlags(c, name)
	}
	return func(_ run, o object) error {
		if flag := c.Flags().Lookup(name); flag.Changed || !k.revise && flag.Value.String() != "" {
			o[f.Name] = value()
		}
		return nil
	}
}

// newSecretFlag adds the flag by which a secret is read from standard input.
func (k kindCommands) newSecretFlag(c *cobra.Command, f *kinds.Field) func(run, object) error {
	given := c.Flags().Bool(f.FlagName()+"-stdin", false, f.Usage)
	return func(r run, o object) (err error) {
		if *given {
			text := ""
			if text, err = cli.ReadPasswordLine(r.ctx, k.process); err == nil && f.Check != nil {
				err = f.Check(text)
			}
			o[f.Name] = text
		}
		return err
	}
}

// newSecretsFlag adds the flag with the names of secrets, which come from the environment.
func (k kindCommands) newSecretsFlag(c *cobra.Command, f *kinds.Field) func(run, object) error {
	names := c.Flags().StringArray(f.FlagName(), nil, f.Usage)
	return func(_ run, o object) error {
		values := map[string]string{}
		for _, name := range *names {
			variable := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			if values[name] = k.process.Getenv(variable); values[name] == "" {
				return fmt.Errorf("--%s %s needs a value in the variable %s", f.FlagName(), name, variable)
			}
			o[f.Name] = values
		}
		return nil
	}
}

// newValue adds a flag with the shape of a field, and returns what returns its value.
func newValue(c *cobra.Command, f *kinds.Field) func() any {
	flags, name := c.Flags(), f.FlagName()
	every, err := time.ParseDuration(f.Default)
	switch {
	case f.Shape == kinds.Texts && f.Whole:
		texts := flags.StringArray(name, nil, f.Usage)
		return func() any { return *texts }
	case f.Shape == kinds.Texts:
		texts := flags.StringSlice(name, nil, f.Usage)
		return func() any { return *texts }
	case f.Shape == kinds.Flag:
		on := flags.Bool(name, f.Default == "true", f.Usage)
		return func() any { return *on }
	case f.Shape == kinds.Number:
		first, _ := strconv.Atoi(f.Default) // zero without a default
		number := flags.Int(name, first, f.Usage)
		return func() any { return *number }
	case f.Shape == kinds.Objects:
		texts, list := flags.StringArray(name, nil, f.Usage), any(nil)
		cli.CheckFirst(c, func() (err error) {
			if list, err = readObjects(f, *texts); err != nil {
				err = fmt.Errorf("--%s: %w", name, err)
			}
			return err
		})
		return func() any { return list }
	case err == nil:
		d := flags.Duration(name, every, f.Usage)
		return func() any { return d.String() }
	}
	text := flags.String(name, f.Default, f.Usage)
	return func() any { return *text }
}

// readObjects returns the objects of texts: grants of groups, or objects in JSON. An empty text is none.
func readObjects(f *kinds.Field, texts []string) (any, error) {
	if f.Control == kinds.ControlGrants {
		return company.ReadGroupGrants(texts)
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	list, d := reflect.New(fieldType(f)).Interface(), json.NewDecoder(strings.NewReader("["+strings.Join(texts, ",")+"]"))
	d.DisallowUnknownFields()
	return list, d.Decode(list)
}

// rowType returns the struct of objects in the output: fields with a column, those of state, and other
// fields. Without state they are in other objects and leave out what is empty.
func rowType(fields []kinds.Field, state reflect.Type) reflect.Type {
	var columns, others []reflect.StructField
	for i := range fields {
		f, empty := &fields[i], ""
		if state == nil && !f.Required {
			empty = ",omitempty"
		}
		field := reflect.StructField{
			Name: strings.ToUpper(f.Name[:1]) + f.Name[1:], Type: fieldType(f),
			Tag: reflect.StructTag(fmt.Sprintf(`json:"%s%s" column:"%s"`, f.Name, empty, f.Column)),
		}
		switch {
		case f.Secret:
		case f.Column != "" || state == nil:
			columns = append(columns, field)
		default:
			others = append(others, field)
		}
	}
	if state != nil {
		columns = append(columns, reflect.VisibleFields(state)...)
	}
	return reflect.StructOf(append(columns, others...))
}

// fieldType returns the type of the values of a field in the output.
func fieldType(f *kinds.Field) reflect.Type {
	switch {
	case f.Shape == kinds.Object:
		return rowType(f.Inner, reflect.TypeFor[struct{}]())
	case f.Shape == kinds.Objects:
		return reflect.SliceOf(rowType(f.Inner, nil))
	case f.Control == kinds.ControlEnd:
		return reflect.TypeFor[stamp]()
	}
	return reflect.TypeOf(map[kinds.Shape]any{
		kinds.Text: "", kinds.Document: map[string]any{}, kinds.Texts: wordList{}, kinds.Flag: false, kinds.Number: 0, kinds.TextMap: map[string]string{},
	}[f.Shape])
}

// wordList is a list that a table shows as words.
type wordList []string

// String returns the words with commas.
func (l wordList) String() string { return strings.Join(l, ", ") }

// stamp is a time in RFC 3339, in whole seconds; empty without one.
type stamp string

// UnmarshalJSON reads a time of the API.
func (s *stamp) UnmarshalJSON(text []byte) error {
	var t *time.Time
	if err := json.Unmarshal(text, &t); err != nil || t == nil {
		return err
	}
	*s = formatOptionalTime(*t)
	return nil
}

// formatOptionalTime returns a time; empty for the zero value.
func formatOptionalTime(t time.Time) stamp {
	if t.IsZero() {
		return ""
	}
	return stamp(t.UTC().Format(time.RFC3339))
}
