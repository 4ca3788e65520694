package statefile

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tollgate-dev/tollgate/core/registry/declaring"
)

// Encode returns a document as a value for a JSON body.
func Encode(n *declaring.Node) any {
	switch n.Form {
	case declaring.Text:
		return n.Text
	case declaring.Flag:
		return n.Text == "true"
	case declaring.Number:
		return json.Number(n.Text)
	case declaring.List:
		list := make([]any, len(n.Items))
		for i := range n.Items {
			list[i] = Encode(&n.Items[i])
		}
		return list
	case declaring.Object:
		object := map[string]any{}
		for i := range n.Members {
			object[n.Members[i].Name] = Encode(&n.Members[i].Value)
		}
		return object
	case declaring.Null:
	}
	return nil
}

func (t *tree) readJSON(text []byte) (declaring.Node, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return declaring.Node{}, declaring.Wrong(t.at(0, 0), "", "is empty")
	}
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil {
		return declaring.Node{}, declaring.Wrong(t.at(0, 0), "", "is not valid JSON: "+err.Error())
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // numbers may be of any size
	return t.decode(d, "", 0)
}

// decode reads one value of a valid JSON text.
func (t *tree) decode(d *json.Decoder, path string, depth int) (declaring.Node, error) {
	v := declaring.Node{Position: t.at(0, 0)}
	if err := t.enter(v.Position, path, depth); err != nil {
		return v, err
	}
	token, _ := d.Token() // no errors here and below, because the text is valid
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return v, t.decodeMembers(d, &v, path, depth)
		}
		v.Form = declaring.List
		for d.More() {
			item, err := t.decode(d, fmt.Sprintf("%s[%d]", path, len(v.Items)), depth+1)
			if err != nil {
				return v, err
			}
			v.Items = append(v.Items, item)
		}
		_, _ = d.Token() // the closing bracket
	case string:
		v.Form, v.Text = declaring.Text, token
	case bool:
		v.Form, v.Text = declaring.Flag, fmt.Sprint(token)
	case json.Number:
		v.Form, v.Text = declaring.Number, token.String()
	}
	return v, nil
}

func (t *tree) decodeMembers(d *json.Decoder, v *declaring.Node, path string, depth int) error {
	v.Form = declaring.Object
	names := map[string]bool{}
	for d.More() {
		token, _ := d.Token()
		name, _ := token.(string)
		inner := join(path, name)
		value, err := t.decode(d, inner, depth+1)
		if err != nil {
			return err
		}
		if err := addMember(v, names, declaring.Member{Position: v.Position, Name: name, Value: value}, inner); err != nil {
			return err
		}
	}
	_, _ = d.Token() // the closing bracket
	return nil
}
