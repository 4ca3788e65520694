package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// chartFolder is the folder of the Helm chart in the repository.
const chartFolder = "deploy/helm/tollgate"

var chartVersions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// writeChart writes the Helm chart to an archive like that of 'helm package', with the version of
// the release as its own and that of the application. It needs a temporary folder.
func (s source) writeChart(out, temporary string) (err error) {
	version := strings.ReplaceAll(s.plainVersion(), "~", "-") // Helm reads semantic versions
	files, err := chartFiles(filepath.Join(s.root, chartFolder))
	if err != nil {
		return err
	}
	for i, f := range files {
		if f.name != "Chart.yaml" {
			continue
		}
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		files[i].from = filepath.Join(temporary, f.name)
		if err := os.WriteFile(files[i].from, chartVersions.ReplaceAll(text, []byte("${1}: "+version)), 0o600); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(out, "tollgate-"+version+".tgz"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	return s.writeTar(archive, "tollgate", files)
}

// chartFiles returns the files of a chart in order, without those whose names begin with a dot.
func chartFiles(folder string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(folder, path)
		files = append(files, file{from: path, name: filepath.ToSlash(name)})
		return err
	})
	return files, err
}
