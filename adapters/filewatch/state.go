package filewatch

import (
	"io/fs"
	"os"
)

// State is which file a path leads to, how long it is and when it was changed. The zero value is that of a path that leads nowhere.
type State struct{ info fs.FileInfo }

// Look returns the state of a path. One that cannot be looked at leads nowhere.
func Look(path string) State {
	info, err := os.Stat(path)
	if err != nil {
		return State{}
	}
	return State{info}
}

// Missing reports whether there was no file.
func (s State) Missing() bool { return s.info == nil }

// Same reports whether nothing has changed from one state to the other. A link that leads elsewhere is a change, also to a file of
// the same length and time.
func (s State) Same(other State) bool {
	if s.Missing() || other.Missing() {
		return s.Missing() && other.Missing()
	}
	a, b := s.info, other.info
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
