package methodfile

import (
	"go.yaml.in/yaml/v4"

	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// document is what methods need of an OpenAPI document.
type document struct {
	OpenAPI string `yaml:"openapi"`
	Swagger string `yaml:"swagger"`
	Tags    []struct {
		Name      string `yaml:"name"`
		ServiceID int    `yaml:"x-service-id"`
	} `yaml:"tags"`
	Paths yaml.Node `yaml:"paths"`
}

// service returns the id of the service that a tag stands for; 0 for none.
func (d *document) service(tag string) int {
	for _, t := range d.Tags {
		if t.Name == tag {
			return t.ServiceID
		}
	}
	return 0
}

// facts are what a path or an operation says of the method.
type facts struct {
	ID          int      `yaml:"x-method-id"`
	ServiceID   int      `yaml:"x-service-id"`
	ServiceName string   `yaml:"x-service-name"`
	Tags        []string `yaml:"tags"`
}

// or fills what is not said with what another one says.
func (f facts) or(other facts) facts {
	if f.ID == 0 {
		f.ID = other.ID
	}
	if f.ServiceID == 0 {
		f.ServiceID = other.ServiceID
	}
	if f.ServiceName == "" {
		f.ServiceName = other.ServiceName
	}
	if len(f.Tags) == 0 {
		f.Tags = other.Tags
	}
	return f
}

// isVerb reports whether a member of a Path Item Object holds an operation.
func isVerb(member string) bool {
	switch member {
	case "get", "put", "post", "delete", "options", "head", "patch", "trace", "query":
		return true
	}
	return false
}

// described reads an OpenAPI document, each path of which is a method.
func described(file *yaml.Node, defaults Defaults) ([]entry, error) {
	var d document
	if err := file.Decode(&d); err != nil {
		return nil, wrong("OpenAPI document", err)
	}
	if d.OpenAPI == "" && d.Swagger == "" || d.Paths.Kind != yaml.MappingNode {
		return nil, fault.New(fault.Invalid, "", "the file is an object, but no OpenAPI document with paths")
	}
	next := defaults.FirstID
	var entries []entry
	for path, item := range members(&d.Paths) {
		where := "path " + path
		f, err := factsOf(item)
		if err != nil {
			return nil, wrong(where, err)
		}
		m := d.method(path, f, defaults)
		if m.ID == 0 && next != 0 {
			m.ID = next
			next++
		}
		if m.ID == 0 {
			return nil, fault.New(fault.Invalid, "", where+": no id: give x-method-id in the document, or the first id to count from")
		}
		entries = append(entries, entry{where, m})
	}
	return entries, nil
}

// factsOf gathers what a path item says, itself before its operations.
func factsOf(item *yaml.Node) (facts, error) {
	var f facts
	if err := item.Decode(&f); err != nil {
		return facts{}, err //nolint:wrapcheck // the caller says where
	}
	for member, n := range members(item) {
		if !isVerb(member) {
			continue
		}
		var operation facts
		if err := n.Decode(&operation); err != nil {
			return facts{}, err //nolint:wrapcheck // the caller says where
		}
		f = f.or(operation)
	}
	return f, nil
}

func (d *document) method(path string, f facts, defaults Defaults) catalogue.Method {
	if f.ServiceName == "" && len(f.Tags) > 0 {
		f = f.or(facts{ServiceName: f.Tags[0], ServiceID: d.service(f.Tags[0])})
	}
	f = f.or(facts{ServiceName: defaults.ServiceName, ServiceID: int(defaults.ServiceID)})
	return catalogue.Method{
		ID: catalogue.MethodID(f.ID), Path: path,
		ServiceID: catalogue.ServiceID(f.ServiceID), ServiceName: f.ServiceName,
	}
}

// members goes through the members of a mapping in their order.
func members(n *yaml.Node) func(yield func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}
