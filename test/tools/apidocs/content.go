package main

import "slices"

// bodyView is a request or response body of one media type.
type bodyView struct {
	MediaType string
	Type      []typePart
	Tables    []table // of the schema, or of each alternative
	Examples  []exampleView
}

// exampleView is an example. Its name is empty if it is the only one.
type exampleView struct{ Name, Text string }

type responseView struct {
	Status, Description string
	Headers             []string
	Bodies              []bodyView
}

func (r responseView) isSuccess() bool { return r.Status[0] == '2' || r.Status[0] == '3' }

// bodyType returns the type of the first body; nil for a response without a body.
func (r responseView) bodyType() []typePart {
	if len(r.Bodies) == 0 {
		return nil
	}
	return r.Bodies[0].Type
}

func (d *document) responseViews(responses orderedMap[response]) ([]responseView, error) {
	var list []responseView
	for _, m := range responses {
		r, err := d.Components.Responses.resolve(m.Value.Ref, m.Value)
		if err != nil {
			return nil, err
		}
		v := responseView{Status: m.Name, Description: r.Description}
		if v.Status == "default" {
			v.Status = "other"
		}
		for _, h := range r.Headers {
			v.Headers = append(v.Headers, h.Name)
		}
		if v.Bodies, err = d.bodyViews(r.Content); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// extractCommonHeaders returns the headers that every response has, and removes them from the
// responses.
func extractCommonHeaders(all []responseView) []string {
	if len(all) == 0 {
		return nil
	}
	var common []string
	for _, name := range all[0].Headers {
		if !slices.ContainsFunc(all, func(r responseView) bool { return !slices.Contains(r.Headers, name) }) {
			common = append(common, name)
		}
	}
	for i := range all {
		all[i].Headers = slices.DeleteFunc(all[i].Headers, func(name string) bool {
			return slices.Contains(common, name)
		})
	}
	return common
}

func (d *document) bodyViews(all orderedMap[media]) ([]bodyView, error) {
	var list []bodyView
	for _, m := range all {
		v := bodyView{MediaType: m.Name, Type: typeOf(m.Value.Schema)}
		var err error
		if v.Tables, err = d.bodyTables(m.Value.Schema); err != nil {
			return nil, err
		}
		if !m.Value.Example.IsZero() {
			text, err := toIndentedJSON(&m.Value.Example)
			if err != nil {
				return nil, err
			}
			v.Examples = append(v.Examples, exampleView{Text: text})
		}
		for _, example := range m.Value.Examples {
			text, err := toIndentedJSON(&example.Value.Value)
			if err != nil {
				return nil, err
			}
			v.Examples = append(v.Examples, exampleView{example.Name, text})
		}
		list = append(list, v)
	}
	return list, nil
}

// bodyTables returns a table of properties for the schema of a body, or for each of its
// alternatives.
func (d *document) bodyTables(body *schema) ([]table, error) {
	if body == nil {
		return nil, nil
	}
	var list []table
	for _, one := range append([]*schema{body}, body.OneOf...) {
		if one.Ref == "" {
			continue
		}
		named, err := d.Components.Schemas.resolve(one.Ref, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, newTable(referencedName(one.Ref), named))
	}
	return list, nil
}
