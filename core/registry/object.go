package registry

// Object is a JSON object of a server document. Its members are read by their exact names, as the
// clients read them, and one of another type counts as missing.
type Object map[string]any

// Text returns a member that is a text.
func (o Object) Text(name string) string {
	s, _ := o[name].(string)
	return s
}

// Member returns a member that is an object.
func (o Object) Member(name string) Object {
	m, _ := o[name].(map[string]any)
	return m
}

// Objects returns those items of a member that are objects.
func (o Object) Objects(name string) []Object {
	items, _ := o[name].([]any)
	var all []Object
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			all = append(all, m)
		}
	}
	return all
}
