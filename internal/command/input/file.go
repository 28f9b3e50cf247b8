package input

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// File is a batch's file. It is read twice: once to check every row, once to send. An input readable only once (stdin, a pipe) is
// spooled. A gzip file is unpacked while it is read.
type File struct {
	Name   string
	stdin  bool
	file   *os.File // nil: kept
	kept   *Spool
	zipped bool
	form   textForm
}

// spoolBytesMax bounds the bytes kept in memory of an input readable only once.
const spoolBytesMax = 8 << 20

// Open opens the input called name, or stdin for "-". A pipe is copied first, since the input is read more than once: to memory, or to a temporary file in spoolDir.
// The caller closes it.
func Open(name string, stdin io.Reader, spoolDir string) (*File, error) {
	if name == "-" {
		in, err := keepInput("stdin", stdin, spoolDir)
		if err == nil {
			in.stdin = true
		}
		return in, err
	}
	fail := func(err error) (*File, error) {
		return nil, &RowError{File: name, Err: words.Pathless(err)}
	}
	f, err := os.Open(name)
	if err != nil {
		return fail(err)
	}
	info, err := f.Stat()
	switch {
	case err == nil && info.IsDir():
		err = errors.New("is a directory")
	case err == nil && info.Mode().IsRegular():
		return (&File{Name: name, file: f}).sniff()
	}
	defer f.Close()
	if err != nil {
		return fail(err)
	}
	return keepInput(name, f, spoolDir)
}

// Folder returns the folder of the file; "" for stdin.
func (f *File) Folder() string {
	if f.stdin {
		return ""
	}
	return filepath.Dir(f.Name)
}

// Folders returns the folder of the file, and that of the file to which it links, if it is another one; nil for stdin.
func (f *File) Folders() []string {
	folder := f.Folder()
	if folder == "" {
		return nil
	}
	target, err := filepath.EvalSymlinks(f.Name)
	if err != nil {
		return []string{folder}
	}
	one, err := os.Stat(folder)
	if other, bad := os.Stat(filepath.Dir(target)); err != nil || bad != nil || os.SameFile(one, other) {
		return []string{folder}
	}
	return []string{folder, filepath.Dir(target)}
}

// keepInput reads r to its end and keeps the bytes, in memory or in a temporary file in dir, so that they can be read again. name is for messages.
func keepInput(name string, r io.Reader, dir string) (*File, error) {
	in := &File{Name: name, kept: &Spool{Dir: dir, Limit: spoolBytesMax}}
	if _, err := io.Copy(in.kept, r); err != nil {
		in.Close()
		return nil, &RowError{File: name, Err: words.Pathless(err)}
	}
	return in.sniff()
}

// sniff reads the beginning of the input, and notes whether it is packed by gzip and how its text is encoded. No text begins with the first two bytes
// of gzip (RFC 1952 section 2.3.1). The error is always nil.
func (in *File) sniff() (*File, error) {
	var magic [2]byte
	_, err := io.ReadFull(in.raw(), magic[:])
	in.zipped = err == nil && magic == [2]byte{0x1f, 0x8b}
	in.form = formOf(in.unpacked())
	return in, nil
}

// Notes returns lines for the user about the encoding, line ends and delimiter that were found in the input. given is the value of --delimiter; 0: none.
func (in *File) Notes(given rune) []string { return in.form.notes(in.Name, given) }

// raw returns a reader of the bytes from the beginning, as they are. A file stays open, so that another file of the same name is not read instead.
func (in *File) raw() io.Reader {
	if in.file == nil {
		return in.kept.Reader()
	}
	return io.NewSectionReader(in.file, 0, math.MaxInt64)
}

// Reader returns a reader from the beginning, unpacked, as UTF-8 with LF or CR LF at the ends of lines.
func (in *File) Reader() io.Reader { return in.form.reader(in.unpacked()) }

// unpacked returns a reader of the bytes from the beginning, unpacked if they are gzip. If they cannot be unpacked, the reader fails.
func (in *File) unpacked() io.Reader {
	if !in.zipped {
		return in.raw()
	}
	z, err := gzip.NewReader(bufio.NewReader(in.raw()))
	if err != nil {
		return failingReader{err}
	}
	return z
}

// failingReader returns its error at the first Read.
type failingReader struct{ err error }

// Read always fails, with the error f.err.
func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// Close closes the file, and removes a temporary copy of it.
func (in *File) Close() {
	if in.file != nil {
		_ = in.file.Close() // only read from
	}
	if in.kept != nil {
		in.kept.Close()
	}
}
