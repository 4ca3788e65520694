package methodfile

import (
	"cmp"

	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// openAPIDocument has the fields of an OpenAPI document that describe methods.
type openAPIDocument struct {
	OpenAPI string `yaml:"openapi"`
	Swagger string `yaml:"swagger"`
	Tags    []struct {
		Name      string `yaml:"name"`
		ServiceID int    `yaml:"x-service-id"`
	} `yaml:"tags"`
	Paths yaml.Node `yaml:"paths"`
}

// serviceOfTag returns the service id of a tag, otherwise 0.
func (d *openAPIDocument) serviceOfTag(tag string) int {
	for _, t := range d.Tags {
		if t.Name == tag {
			return t.ServiceID
		}
	}
	return 0
}

// methodFields are the fields of a path or an operation that describe the method.
type methodFields struct {
	ID          int      `yaml:"x-method-id"`
	ServiceID   int      `yaml:"x-service-id"`
	ServiceName string   `yaml:"x-service-name"`
	Tags        []string `yaml:"tags"`
}

// withDefaults fills empty fields with those of other.
func (f methodFields) withDefaults(other methodFields) methodFields {
	f.ID = cmp.Or(f.ID, other.ID)
	f.ServiceID = cmp.Or(f.ServiceID, other.ServiceID)
	f.ServiceName = cmp.Or(f.ServiceName, other.ServiceName)
	if len(f.Tags) == 0 {
		f.Tags = other.Tags
	}
	return f
}

// isVerb reports whether a member of a Path Item Object is an operation.
func isVerb(member string) bool {
	switch member {
	case "get", "put", "post", "delete", "options", "head", "patch", "trace", "query":
		return true
	}
	return false
}

// parseOpenAPI parses an OpenAPI document. Each path is a method.
func parseOpenAPI(file *yaml.Node, defaults Defaults) ([]entry, error) {
	var d openAPIDocument
	if err := file.Decode(&d); err != nil {
		return nil, invalidEntry("OpenAPI document", err)
	}
	if d.OpenAPI == "" && d.Swagger == "" || d.Paths.Kind != yaml.MappingNode {
		return nil, fault.New(fault.Invalid, "the file is an object, but not an OpenAPI document with paths")
	}
	next := defaults.FirstID
	var entries []entry
	for path, item := range mappingMembers(&d.Paths) {
		where := "path " + path
		f, err := parsePathItem(item)
		if err != nil {
			return nil, invalidEntry(where, err)
		}
		m := d.newMethod(path, f, defaults)
		if m.ID == 0 && next != 0 {
			m.ID = next
			next++
		}
		if m.ID == 0 {
			return nil, fault.New(fault.Invalid,
				where+": no id: give x-method-id in the document, or the first id to count from")
		}
		entries = append(entries, entry{where, m})
	}
	return entries, nil
}

// parsePathItem collects the fields of a path. Its own fields take precedence over those of its
// operations.
func parsePathItem(item *yaml.Node) (methodFields, error) {
	var f methodFields
	if err := item.Decode(&f); err != nil {
		return methodFields{}, err //nolint:wrapcheck // the caller adds the place
	}
	for member, n := range mappingMembers(item) {
		if !isVerb(member) {
			continue
		}
		var operation methodFields
		if err := n.Decode(&operation); err != nil {
			return methodFields{}, err //nolint:wrapcheck // the caller adds the place
		}
		f = f.withDefaults(operation)
	}
	return f, nil
}

func (d *openAPIDocument) newMethod(path string, f methodFields, defaults Defaults) catalogue.Method {
	if f.ServiceName == "" && len(f.Tags) > 0 {
		f = f.withDefaults(methodFields{ServiceName: f.Tags[0], ServiceID: d.serviceOfTag(f.Tags[0])})
	}
	f = f.withDefaults(methodFields{ServiceName: defaults.ServiceName, ServiceID: int(defaults.ServiceID)})
	return catalogue.Method{
		ID: catalogue.MethodID(f.ID), Path: path,
		ServiceID: catalogue.ServiceID(f.ServiceID), ServiceName: f.ServiceName,
	}
}

// mappingMembers iterates over the members of a mapping in their order.
func mappingMembers(n *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}
