package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// book is the path of a file of JSON lines; an empty one keeps nothing.
type book string

// check makes the file where there is none.
func (b book) check() error {
	if b == "" {
		return nil
	}
	return b.append(nil)
}

// write adds a line.
func (b book) write(entry any) error {
	if b == "" {
		return nil
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("writing the message as JSON: %w", err)
	}
	return b.append(append(line, '\n'))
}

// append adds line in one write, so that lines of parallel calls never mix. The file is opened each time: it may be moved away
// or removed meanwhile.
func (b book) append(line []byte) error {
	file, err := os.OpenFile(string(b), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if len(line) > 0 {
		_, err = file.Write(line)
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}
