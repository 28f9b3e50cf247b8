package sqljournal

import (
	"bytes"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// named is a folder of files with names in them filled in.
type named struct {
	below fs.FS // the folder "schema"
	fill  *strings.Replacer
}

// Files returns the folder "schema" of files as a file system of its own, with a value in the place of each {name} in the texts.
func Files(files fs.FS, names map[string]string) fs.FS {
	var pairs []string
	for name, value := range names {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return named{files, strings.NewReplacer(pairs...)}
}

// Open implements [fs.FS]: it opens a file with its placeholders replaced, or the folder itself (".").
func (n named) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		all, err := n.ReadDir(name)
		return &folder{left: all}, err
	}
	text, err := fs.ReadFile(n.below, path.Join("schema", name))
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	filled := []byte(n.fill.Replace(string(text)))
	return &file{Reader: bytes.NewReader(filled), info: info{name: name, size: len(filled)}}, nil
}

// ReadDir implements [fs.ReadDirFS]. There is one folder, ".". The sizes are those of the texts with their placeholders replaced.
func (n named) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	below, err := fs.ReadDir(n.below, "schema")
	all := make([]fs.DirEntry, 0, len(below))
	for _, entry := range below {
		opened, err := n.Open(entry.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, fs.FileInfoToDirEntry(opened.(*file).info))
	}
	return all, err
}

// file is an open file.
type file struct {
	*bytes.Reader
	info info
}

// Stat implements [fs.File]. It never fails.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements [fs.File]. There is nothing to close.
func (*file) Close() error { return nil }

// folder is the open root.
type folder struct{ left []fs.DirEntry }

// Stat implements [fs.File]. It never fails.
func (*folder) Stat() (fs.FileInfo, error) { return info{name: ".", dir: true}, nil }

// Read implements [fs.File]. It always fails: a folder has no bytes.
func (*folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

// Close implements [fs.File]. There is nothing to close.
func (*folder) Close() error { return nil }

// ReadDir implements [fs.ReadDirFile]: it returns the next n entries, io.EOF at the end, or all that are left if n is not positive.
func (d *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 || n > len(d.left) {
		if n > 0 && len(d.left) == 0 {
			return nil, io.EOF
		}
		n = len(d.left)
	}
	some := slices.Clone(d.left[:n])
	d.left = d.left[n:]
	return some, nil
}

// info describes a file, or the root.
type info struct {
	name string
	size int
	dir  bool
}

// Name implements [fs.FileInfo].
func (i info) Name() string { return i.name }

// Size implements [fs.FileInfo].
func (i info) Size() int64 { return int64(i.size) }

// Mode implements [fs.FileInfo]: everything is for reading.
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// ModTime implements [fs.FileInfo]. It is the zero time.
func (info) ModTime() time.Time { return time.Time{} }

// IsDir implements [fs.FileInfo].
func (i info) IsDir() bool { return i.dir }

// Sys implements [fs.FileInfo]. It is always nil.
func (info) Sys() any { return nil }

// none is a folder whose files are all the same error.
type none struct{ err error }

// NoFiles returns a folder that cannot be read, with the reason.
func NoFiles(err error) fs.FS { return none{err} }

// Open implements [fs.FS]. It always fails: there is no file.
func (n none) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: n.err}
}
