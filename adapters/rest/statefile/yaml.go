package statefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/registry/declaring"
)

func (t *tree) readYAML(text []byte) (declaring.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return declaring.Node{}, t.syntaxError(err)
	}
	var document, next yaml.Node
	if err := loader.Load(&document); errors.Is(err, io.EOF) {
		return declaring.Node{}, declaring.Wrong(t.at(0, 0), "", "is empty")
	} else if err != nil {
		return declaring.Node{}, t.syntaxError(err)
	}
	if err := loader.Load(&next); err == nil {
		return declaring.Node{}, declaring.Wrong(t.at(next.Line, next.Column), "", "must be one YAML document")
	} else if !errors.Is(err, io.EOF) {
		return declaring.Node{}, t.syntaxError(err)
	}
	if document.Kind == yaml.DocumentNode && len(document.Content) == 1 {
		document = *document.Content[0]
	}
	return t.convert(&document, "", 0)
}

func (t *tree) syntaxError(err error) error {
	var one *yaml.LoadError
	if errors.As(err, &one) {
		return declaring.Wrong(t.at(one.Mark.Line, one.Mark.Column), "",
			"is not YAML: "+strings.TrimPrefix(one.Message, "yaml: "))
	}
	return declaring.Wrong(t.at(0, 0), "", "is not YAML: "+err.Error())
}

// convert returns a value with what its aliases refer to.
func (t *tree) convert(n *yaml.Node, path string, depth int) (declaring.Node, error) {
	v := declaring.Node{Position: t.at(n.Line, n.Column)}
	if err := t.enter(v.Position, path, depth); err != nil {
		return v, err
	}
	switch n.Kind {
	case yaml.AliasNode:
		return t.convert(n.Alias, path, depth+1) // an alias of what it is in is too deep
	case yaml.MappingNode:
		return v, t.convertMembers(&v, n, path, depth)
	case yaml.SequenceNode:
		v.Form = declaring.List
		for i, item := range n.Content {
			converted, err := t.convert(item, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return v, err
			}
			v.Items = append(v.Items, converted)
		}
		return v, nil
	}
	form, known := map[string]declaring.Form{
		"!!str": declaring.Text, "!!timestamp": declaring.Text, "!!bool": declaring.Flag, "!!null": declaring.Null,
		"!!int": declaring.Number, "!!float": declaring.Number,
	}[n.ShortTag()]
	if !known {
		return v, declaring.Wrong(v.Position, clip(path), "has the tag "+clip(n.Tag)+", which a state does not have")
	}
	if v.Form, v.Text = form, n.Value; form == declaring.Flag {
		v.Text = strings.ToLower(n.Value)
	}
	return v, nil
}

func (t *tree) convertMembers(v *declaring.Node, n *yaml.Node, path string, depth int) error {
	v.Form = declaring.Object
	names := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at, inner := t.at(key.Line, key.Column), join(path, key.Value)
		if key.Kind != yaml.ScalarNode || key.ShortTag() == "!!merge" {
			return declaring.Wrong(at, clip(inner), "must be a name")
		}
		value, err := t.convert(n.Content[i+1], inner, depth+1)
		if err != nil {
			return err
		}
		if err := addMember(v, names, declaring.Member{Position: at, Name: key.Value, Value: value}, inner); err != nil {
			return err
		}
	}
	return nil
}
