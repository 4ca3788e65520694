package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resolveParameters returns the parameters with references replaced by the parameters that they
// name.
func (d *document) resolveParameters(list []parameter) ([]parameter, error) {
	var all []parameter
	for _, p := range list {
		p, err := d.Components.Parameters.resolve(p.Ref, p)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func parameterRows(list []parameter) []row {
	var rows []row
	for _, p := range list {
		r := row{
			Name: p.Name, In: p.In, Required: p.Required, Description: p.Description, Type: typeOf(p.Schema),
			Rules: rulesOf(p.Schema),
		}
		if p.Example != nil {
			r.Rules = append(r.Rules, "such as "+formatValue(p.Example))
		}
		rows = append(rows, r)
	}
	return rows
}

// curlCommand returns a curl command that calls an operation with its examples. The shell variable
// TOLLGATE holds the URL of the service, and TOKEN the access token.
func curlCommand(v *operationView, parameters []parameter) string {
	path, separator := v.Path, "?"
	for _, p := range parameters {
		switch {
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", exampleOf(p))
		case p.In == "query" && p.Required:
			path += separator + p.Name + "=" + exampleOf(p)
			separator = "&"
		}
	}
	method := ""
	if v.Method != "GET" && (v.Method != "POST" || v.Body == nil) {
		method = "-X " + v.Method + " "
	}
	lines := []string{fmt.Sprintf(`curl -s %s"$TOLLGATE%s"`, method, path)}
	if v.NeedsToken {
		lines = append(lines, `-H "Authorization: Bearer $TOKEN"`)
	}
	if len(v.Body) > 0 && len(v.Body[0].Examples) > 0 {
		lines = append(lines, dataOptions(v.Body[0].MediaType, v.Body[0].Examples[0].Text)...)
	}
	return strings.Join(lines, " \\\n  ")
}

// dataOptions returns the options of curl that send the example of a body, which is JSON. A form has
// the members of an object.
func dataOptions(mediaType, example string) []string {
	var fields map[string]string
	if mediaType != "application/x-www-form-urlencoded" || json.Unmarshal([]byte(example), &fields) != nil {
		return []string{"-H 'Content-Type: application/json'", "-d " + quote(example)}
	}
	var options []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		options = append(options, "--data-urlencode "+quote(name+"="+fields[name]))
	}
	return options
}

// quote returns a text as a word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// exampleOf returns the example of a parameter, else its first allowed value, else its name in
// braces.
func exampleOf(p parameter) string {
	switch {
	case p.Example != nil:
		return formatValue(p.Example)
	case p.Schema != nil && len(p.Schema.Enum) > 0:
		return formatValue(p.Schema.Enum[0])
	default:
		return "{" + p.Name + "}"
	}
}
