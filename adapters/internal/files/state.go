package files

import (
	"io/fs"
	"os"
)

// State identifies the file at a path, its length and its time of modification. The zero value
// means that there is no file.
type State struct{ info fs.FileInfo }

// StateOf returns the state of a path. It is the zero value if the file does not exist or cannot be
// examined.
func StateOf(path string) State {
	info, err := os.Stat(path)
	if err != nil {
		return State{}
	}
	return State{info}
}

// IsMissing reports whether there was no file.
func (s State) IsMissing() bool { return s.info == nil }

// Equal reports whether two states are of the same, unchanged file. A link that leads to another
// file is a change, even if that file has the same length and time.
func (s State) Equal(other State) bool {
	if s.IsMissing() || other.IsMissing() {
		return s.IsMissing() && other.IsMissing()
	}
	a, b := s.info, other.info
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
