package files

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
)

// Permission bits of a secret file. A group may read it, because orchestrators give files to
// containers in this way.
const (
	writableByAll fs.FileMode = 0o002
	tooOpen       fs.FileMode = 0o024 // the group may write, or all may read
)

// CheckSecret checks who may use a file that must stay secret, for example a signing key or a
// database. It returns an error if every user may write to it, and a sentence for a warning if
// other users may read it or its group may write to it. It returns neither for a file that does not
// exist, and on Windows, which does not have these permissions.
func CheckSecret(path string) (warning string, err error) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return "", nil //nolint:nilerr // opening the file reports it
	}
	switch mode := info.Mode().Perm(); {
	case mode&writableByAll != 0:
		return "", &fs.PathError{
			Op: "use", Path: path,
			Err: fmt.Errorf(
				"every user may write to it (mode %#o): run chmod 600 on it, after you have checked that nobody has changed it", mode),
		}
	case mode&tooOpen != 0:
		return fmt.Sprintf("other users may read or change %s (mode %#o): run chmod 600 on it", path, mode), nil
	}
	return "", nil
}
