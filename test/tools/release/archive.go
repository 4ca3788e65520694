package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// writeArchive writes the files of a target to one file, in a folder with the archive's name: zip
// for Windows, tar.gz for the others.
func (s source) writeArchive(out string, t target, files []file) (err error) {
	name := fmt.Sprintf("tollgate_%s_%s_%s", s.plainVersion(), t.os, t.arch)
	write, suffix := s.writeTar, ".tar.gz"
	if t.os == "windows" {
		write, suffix = s.writeZip, ".zip"
	}
	target, err := os.Create(filepath.Join(out, name+suffix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return write(target, name, files)
}

func (f file) mode() os.FileMode {
	if f.executable {
		return 0o755
	}
	return 0o644
}

func (s source) writeTar(w io.Writer, folder string, files []file) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR, Name: folder + "/" + f.name, Size: int64(len(content)),
			Mode: int64(f.mode()), ModTime: s.committed, Uname: "root", Gname: "root",
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func (s source) writeZip(w io.Writer, folder string, files []file) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		content, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: folder + "/" + f.name, Method: zip.Deflate, Modified: s.committed.UTC()}
		header.SetMode(f.mode())
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeSums writes SHA256SUMS of the files in a folder, in the form of sha256sum.
func writeSums(folder string) error {
	entries, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), entry.Name())
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(text.String()), 0o644)
}
