package review

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Topic is what a point of a summary is about. The most dangerous one is the least.
type Topic uint8

// The topics: where data goes, which code runs and with what, where it comes from, and the rest.
const (
	TopicHost Topic = iota
	TopicPackage
	TopicCommand
	TopicArgument
	TopicVariable
	TopicSecret
	TopicHeader
	TopicRepository
	TopicTransport
	TopicAddress
	TopicProperty
)

var topicWords = [...]string{
	"host", "package", "command", "argument", "environment variable", "secret", "header", "repository", "transport",
	"address", "property",
}

// Point is one thing that a document adds, changes or removes.
type Point struct {
	Topic         Topic
	Added         bool
	Removed       bool
	Name          string // of what it is about
	Before, After string // the value, as far as it is one short text
	Note          string // which secrets go to a host, or of which package a command is; may be empty
}

// IsDangerous reports whether a point is about where data goes, which code runs and with what.
func (p Point) IsDangerous() bool { return p.Topic <= TopicSecret && !p.Removed && !p.isVersion() }

// isVersion reports whether only the version of a package changed.
func (p Point) isVersion() bool {
	return p.Topic == TopicPackage && !p.Added && p.Name != "" && p.Before != "" && p.After != ""
}

// IsHarmless reports whether a point is about a text, or about the version of a package, so that it may be approved
// together with others.
func (p Point) IsHarmless() bool { return p.Topic == TopicProperty || p.isVersion() }

// Words returns what happens to what: "New host".
func (p Point) Words() string {
	switch {
	case p.Added:
		return "New " + topicWords[p.Topic]
	case p.Removed:
		return "Removed " + topicWords[p.Topic]
	}
	return "Changed " + topicWords[p.Topic]
}

// Summarize returns what a document changes, the most dangerous first and what is removed last; of a
// document with nothing before it, what it brings. Each property that differs has a point. It returns
// fault.Invalid if one of the documents is not a JSON object.
func Summarize(before, after []byte) ([]Point, error) {
	old := jsonvalue.Object{}
	if before != nil {
		var err error
		if old, err = readObject(before); err != nil {
			return nil, err
		}
	}
	now, err := readObject(after)
	if err != nil {
		return nil, err
	}
	points := comparedFacts(readFacts(old), readFacts(now))
	told := map[string]bool{}
	all := make([]Point, 0, len(points))
	for _, p := range points {
		told[p.property] = true
		all = append(all, p.Point)
	}
	for _, name := range itemized { // the order of its items, for example
		if !told[name] && encode(old[name]) != encode(now[name]) {
			all = append(all, Point{Topic: TopicProperty, Name: name, Added: old[name] == nil, Removed: now[name] == nil})
		}
	}
	slices.SortStableFunc(all, func(a, b Point) int {
		return cmp.Or(compareFlags(a.Removed, b.Removed), cmp.Compare(a.Topic, b.Topic), compareFlags(b.Added, a.Added))
	})
	return all, nil
}

// compareFlags orders false before true.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// itemized are the properties whose parts are facts.
var itemized = []string{"remotes", "packages", "repository"}

// fact is one thing that a document says. Two documents are compared by the facts with one key.
type fact struct {
	topic    Topic
	property string // of the document
	key      string
	name     string // shown
	text     string // the value that is shown; may be empty
	detail   string // the value that is compared
	note     string
}

// namedPoint is a point with the property of the document that it is in.
type namedPoint struct {
	Point

	property string
}

// facts collects facts.
type facts struct {
	list []fact
	seen map[string]int
}

// add adds a fact. Facts with one key are numbered.
func (f *facts) add(one fact) {
	one.key = strconv.Itoa(int(one.topic)) + " " + one.property + " " + one.key
	n := f.seen[one.key]
	if f.seen[one.key]++; n > 0 {
		one.key += " " + strconv.Itoa(n)
	}
	f.list = append(f.list, one)
}

// readFacts returns what a document says.
func readFacts(root jsonvalue.Object) []fact {
	f := &facts{seen: map[string]int{}}
	notes := map[string]map[string]string{"remotes": secretsTo(root.Objects("remotes"))}
	for _, property := range []string{"remotes", "packages"} {
		found := Origins{hosts: map[string]bool{}}
		found.addHosts(root[property])
		for _, host := range slices.Sorted(maps.Keys(found.hosts)) {
			f.add(fact{topic: TopicHost, property: property, key: host, name: host, note: notes[property][host]})
		}
	}
	for _, r := range root.Objects("remotes") {
		host := withoutPath(r.Text("url"))
		f.addTransport("remotes", host, host, r)
	}
	own := versions(nil).with(root.Text("version"))
	for _, p := range root.Objects("packages") {
		f.addPackage(p, own.with(p.Text("version")))
	}
	if r, ok := root["repository"].(jsonvalue.Object); ok {
		f.add(fact{topic: TopicRepository, property: "repository", name: r.Text("url"), text: r.Text("url"), detail: encode(r)})
	}
	for _, name := range slices.SortedFunc(maps.Keys(root), compareDanger) {
		if slices.Contains(itemized, name) {
			continue
		}
		f.add(fact{topic: TopicProperty, property: name, key: name, name: name, text: root.Text(name), detail: encode(root[name])})
	}
	return f.list
}

// addTransport adds a remote, or the transport of a package, which has a key and a name.
func (f *facts) addTransport(property, key, name string, t jsonvalue.Object) {
	if len(t) == 0 {
		return
	}
	f.add(fact{topic: TopicTransport, property: property, key: key, name: name, text: t.Text("type")})
	if rest := without(t, "type", "headers"); len(rest) > 0 {
		replaceText(rest, "url", withoutHost)
		f.add(fact{topic: TopicAddress, property: property, key: key, name: name, text: t.Text("url"), detail: encode(rest)})
	}
	for _, h := range t.Objects("headers") {
		f.addInput(TopicHeader, property, key, h)
	}
	f.addSecrets(property, key, t.Inner("variables"))
}

// addPackage adds a package. own are the versions that its parts may name without being others.
func (f *facts) addPackage(p jsonvalue.Object, own versions) {
	key := p.Text("registryType") + " " + own.freeURL(p.Text("identifier"))
	if p.Text("registryType") == "oci" {
		key = "oci " + freeImage(p.Text("identifier"))
	}
	rest := without(p, "version", "runtimeHint", "runtimeArguments", "packageArguments", "environmentVariables", "transport")
	f.add(fact{
		topic: TopicPackage, property: "packages", key: key, name: p.Text("registryType") + " " + p.Text("identifier"),
		text: p.Text("version"), detail: encode(rest),
	})
	if hint := p.Text("runtimeHint"); hint != "" {
		f.add(fact{topic: TopicCommand, property: "packages", key: key, name: hint, text: hint, note: "for " + p.Text("identifier")})
	}
	for _, list := range []string{"runtimeArguments", "packageArguments"} {
		for _, a := range p.Objects(list) {
			f.add(fact{
				topic: TopicArgument, property: "packages", key: list + " " + key + " " + encode(a),
				name: cmp.Or(describeArgument(a), encode(a)), detail: encode(a),
			})
			f.addSecret("packages", key, a.Text("name"), a)
			f.addSecrets("packages", key, a.Inner("variables"))
		}
	}
	for _, v := range p.Objects("environmentVariables") {
		f.addInput(TopicVariable, "packages", key, v)
	}
	f.addTransport("packages", key, p.Text("registryType")+" "+p.Text("identifier"), p.Inner("transport"))
}

// secretsTo returns in words, by host, which secrets the remotes there get.
func secretsTo(remotes []jsonvalue.Object) map[string]string {
	names, notes, seen := map[string][]string{}, map[string]string{}, map[[2]string]bool{}
	for _, r := range remotes {
		f, host := &facts{seen: map[string]int{}}, hostIn(urlForm.FindString(r.Text("url")))
		f.addTransport("remotes", "", "", r)
		for _, one := range f.list {
			if of := [2]string{host, one.name}; one.topic == TopicSecret && !seen[of] {
				seen[of], names[host] = true, append(names[host], one.name)
			}
		}
	}
	for host, all := range names {
		notes[host] = "secret " + strings.Join(all, ", ") + " goes there"
	}
	return notes
}

// addInput adds a header or an environment variable, and the secrets in it.
func (f *facts) addInput(topic Topic, property, key string, input jsonvalue.Object) {
	name := input.Text("name")
	f.add(fact{
		topic: topic, property: property, key: key + " " + name, name: name,
		text: cmp.Or(input.Text("value"), input.Text("default")), detail: encode(without(input, "isSecret")),
	})
	f.addSecret(property, key, name, input)
	f.addSecrets(property, key, input.Inner("variables"))
}

// addSecret adds an input if its value is a secret.
func (f *facts) addSecret(property, key, name string, input jsonvalue.Object) {
	if input.Flag("isSecret") {
		f.add(fact{topic: TopicSecret, property: property, key: key + " " + name, name: name})
	}
}

func (f *facts) addSecrets(property, key string, variables jsonvalue.Object) {
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		f.addSecret(property, key, name, variables.Inner(name))
	}
}

// without returns an object without some of its members.
func without(o jsonvalue.Object, names ...string) jsonvalue.Object {
	rest := maps.Clone(o)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

// encode returns the JSON of a value with members in the order of their names; empty for null.
func encode(v jsonvalue.Value) string {
	if v == nil {
		return ""
	}
	text, _ := json.Marshal(v) // what was JSON always has a JSON form
	return string(text)
}

// comparedFacts returns the points in which facts differ.
func comparedFacts(before, after []fact) (points []namedPoint) {
	old := make(map[string]fact, len(before))
	for _, f := range before {
		old[f.key] = f
	}
	var added []fact
	for _, f := range after {
		o, known := old[f.key]
		delete(old, f.key)
		switch {
		case !known:
			added = append(added, f)
		case o.text != f.text || o.detail != f.detail:
			points = append(points, changedPoint(o, f))
		}
	}
	var removed []fact
	for _, f := range before {
		if _, left := old[f.key]; left {
			removed = append(removed, f)
		}
	}
	return append(points, pairFacts(removed, added)...)
}

// pairFacts returns the points of facts that were removed and added: none for those that only moved,
// one for those with one name, and for the only ones of a topic.
func pairFacts(removed, added []fact) (points []namedPoint) {
	type identity struct {
		topic          Topic
		property, name string
	}
	gone, left := map[identity][]fact{}, map[Topic]int{}
	for _, f := range removed {
		id := identity{f.topic, f.property, f.name}
		gone[id] = append(gone[id], f)
		left[f.topic]++
	}
	var fresh []fact
	for _, f := range added {
		id := identity{f.topic, f.property, f.name}
		if len(gone[id]) == 0 {
			fresh = append(fresh, f)
			continue
		}
		o := gone[id][0]
		gone[id] = gone[id][1:]
		left[f.topic]--
		if o.text != f.text || o.detail != f.detail {
			points = append(points, changedPoint(o, f))
		}
	}
	fresher := map[Topic]int{}
	for _, f := range fresh {
		fresher[f.topic]++
	}
	single := map[Topic]fact{}
	for _, f := range removed {
		id := identity{f.topic, f.property, f.name}
		if len(gone[id]) == 0 {
			continue
		}
		gone[id] = gone[id][1:]
		if left[f.topic] == 1 && fresher[f.topic] == 1 && f.topic != TopicSecret && f.topic != TopicProperty {
			single[f.topic] = f
			continue
		}
		points = append(points, namedPoint{Point{Topic: f.topic, Removed: true, Name: f.name, Before: f.shown(), Note: f.note}, f.property})
	}
	for _, f := range fresh {
		if o, paired := single[f.topic]; paired {
			if !o.isOf(f) && !o.isMoved(f, fresh) {
				points = append(points, changedPoint(o, f))
			}
			continue
		}
		points = append(points, namedPoint{Point{Topic: f.topic, Added: true, Name: f.name, After: f.shown(), Note: f.note}, f.property})
	}
	return points
}

// shown returns the value of a fact beside its name; empty if the name says it.
func (f fact) shown() string {
	if f.text == f.name {
		return ""
	}
	return f.text
}

// isOf reports whether a fact is the same for another package or remote, which has a point itself.
func (f fact) isOf(other fact) bool {
	return (f.topic == TopicCommand || f.topic == TopicTransport) && f.text == other.text
}

// isMoved reports whether the address of a remote is the same at another host, which is new and has a point itself.
func (f fact) isMoved(other fact, fresh []fact) bool {
	return f.topic == TopicAddress && f.detail == other.detail && slices.ContainsFunc(fresh, func(one fact) bool {
		return one.topic == TopicHost && one.property == other.property && one.name == other.name
	})
}

// changedPoint returns the point of a fact that changed. One whose name changed has the names as values, but for a
// transport and an address.
func changedPoint(before, after fact) namedPoint {
	p := Point{Topic: after.topic, Name: after.name, Before: before.text, After: after.text, Note: after.note}
	switch {
	case before.name != after.name && after.topic == TopicAddress:
		p.Name = ""
	case before.name != after.name && after.topic == TopicTransport: // the host or the package has a point itself
	case before.name != after.name:
		p.Name, p.Before, p.After = "", before.name, after.name
	case before.text == after.text:
		p.Before, p.After = "", ""
	}
	return namedPoint{p, after.property}
}

// Warnings returns what a reviewer must look at in a document although the checks of its packages
// passed: arguments that come before the checked package, so that the command may start something
// else. It returns fault.Invalid if the document is not a JSON object.
func Warnings(document []byte) ([]string, error) {
	root, err := readObject(document)
	if err != nil {
		return nil, err
	}
	var all []string
	for i, p := range root.Objects("packages") {
		for j, argument := range p.Objects("runtimeArguments") {
			if text := describeArgument(argument); text != "" {
				all = append(all,
					fmt.Sprintf("packages[%d].runtimeArguments[%d]: %s comes before the package %s, so the command may start something else",
						i, j, text, p.Text("identifier")))
			}
		}
	}
	return all, nil
}

// describeArgument returns an argument as it is in a command; empty for one without a name and a
// value.
func describeArgument(argument jsonvalue.Object) string {
	value := argument.Text("value")
	for _, other := range []string{"default", "valueHint"} {
		if value == "" {
			value = argument.Text(other)
		}
	}
	switch name := argument.Text("name"); {
	case argument.Text("type") == "named" && name != "" && value != "":
		return fmt.Sprintf("%q", name+" "+value)
	case argument.Text("type") == "named" && name != "":
		return fmt.Sprintf("%q", name)
	case value != "":
		return fmt.Sprintf("%q", value)
	}
	return ""
}
