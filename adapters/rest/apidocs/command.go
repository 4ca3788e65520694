package apidocs

import (
	"fmt"
	"strings"
)

// resolved returns parameters with what references stand for.
func (s *spec) resolved(list []parameter) ([]parameter, error) {
	var all []parameter
	for _, p := range list {
		p, err := s.Components.Parameters.find(p.Ref, p)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

func rowsOfParameters(list []parameter) []row {
	var rows []row
	for _, p := range list {
		r := row{Name: p.Name, In: p.In, Required: p.Required, Description: p.Description, Type: typeOf(p.Schema), Rules: rulesOf(p.Schema)}
		if p.Example != nil {
			r.Rules = append(r.Rules, "such as "+plain(p.Example))
		}
		rows = append(rows, r)
	}
	return rows
}

// command returns a call of curl with the examples of an operation: its address
// in TOLLGATE, and the access token in TOKEN, where one is needed.
func command(c *call, parameters []parameter) string {
	address := c.Path
	for _, p := range parameters {
		if p.In == "path" {
			address = strings.ReplaceAll(address, "{"+p.Name+"}", exampleOf(p))
		}
	}
	method := ""
	if c.Method != "GET" && (c.Method != "POST" || c.Body == nil) {
		method = "-X " + c.Method + " "
	}
	lines := []string{fmt.Sprintf(`curl -s %s"$TOLLGATE%s"`, method, address)}
	if c.Token {
		lines = append(lines, `-H "Authorization: Bearer $TOKEN"`)
	}
	if len(c.Body) > 0 && len(c.Body[0].Examples) > 0 {
		sent := strings.ReplaceAll(c.Body[0].Examples[0].Text, "'", `'\''`)
		lines = append(lines, "-H 'Content-Type: application/json'", "-d '"+sent+"'")
	}
	return strings.Join(lines, " \\\n  ")
}

// exampleOf returns a value for a parameter.
func exampleOf(p parameter) string {
	switch {
	case p.Example != nil:
		return plain(p.Example)
	case p.Schema != nil && len(p.Schema.Enum) > 0:
		return plain(p.Schema.Enum[0])
	default:
		return "{" + p.Name + "}"
	}
}
