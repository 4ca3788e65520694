package declaring

// Form is the form of a Node.
type Form uint8

// The forms.
const (
	Null Form = iota
	Text
	Flag
	Number
	List
	Object
)

// Position is a place in a file; the zero value is unknown.
type Position struct {
	File         string // empty for the only one
	Line, Column int
}

// Node is a value in a file, as a reader of the format has found it. No two members of an object
// have the same name.
type Node struct {
	Position

	Form    Form
	Text    string // of a Text; "true" or "false" of a Flag
	Items   []Node // of a List
	Members []Member
}

// Member is a member of an Object. Its position is that of its name.
type Member struct {
	Position

	Name  string
	Value Node
}

// find returns the value of a member; nil if it is missing or null.
func (n *Node) find(name string) *Node {
	for i := range n.Members {
		if m := &n.Members[i]; m.Name == name && m.Value.Form != Null {
			return &m.Value
		}
	}
	return nil
}
