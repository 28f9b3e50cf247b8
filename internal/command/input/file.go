package input

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// File is a batch's file, which is read twice: once to check every row, once to
// send. What cannot be read twice (stdin, a pipe) is spooled. A gzip file is
// unpacked while it is read.
type File struct {
	Name   string
	file   *os.File // nil: kept
	kept   *Spool
	zipped bool
	form   textForm
}

// spoolBytesMax is how much of what cannot be read twice is kept in memory.
const spoolBytesMax = 8 << 20

// Open opens name; "-" is stdin. What has to be kept goes to spoolDir.
func Open(name string, stdin io.Reader, spoolDir string) (*File, error) {
	if name == "-" {
		return keepInput("stdin", stdin, spoolDir)
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

// keepInput reads r to its end.
func keepInput(name string, r io.Reader, dir string) (*File, error) {
	in := &File{Name: name, kept: &Spool{Dir: dir, Limit: spoolBytesMax}}
	if _, err := io.Copy(in.kept, r); err != nil {
		in.Close()
		return nil, &RowError{File: name, Err: words.Pathless(err)}
	}
	return in.sniff()
}

// sniff sees whether the input is packed, and how its text is written: the two bytes that
// gzip begins with (RFC 1952 section 2.3.1) begin no text.
func (in *File) sniff() (*File, error) {
	var magic [2]byte
	_, err := io.ReadFull(in.raw(), magic[:])
	in.zipped = err == nil && magic == [2]byte{0x1f, 0x8b}
	in.form = formOf(in.unpacked())
	return in, nil
}

// Notes are lines for whoever may have meant something else than what was found. given is --delimiter.
func (in *File) Notes(given rune) []string { return in.form.notes(in.Name, given) }

// raw starts from the beginning. The file stays the same one even if another
// takes its name meanwhile.
func (in *File) raw() io.Reader {
	if in.file == nil {
		return in.kept.Reader()
	}
	return io.NewSectionReader(in.file, 0, math.MaxInt64)
}

// Reader starts from the beginning, unpacked, as UTF-8 with lines that end in LF or CR LF.
func (in *File) Reader() io.Reader { return in.form.reader(in.unpacked()) }

// unpacked starts from the beginning, unpacked.
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

// failingReader gives its error at the first Read.
type failingReader struct{ err error }

// Read gives the error.
func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func (in *File) Close() {
	if in.file != nil {
		_ = in.file.Close() // only read from
	}
	if in.kept != nil {
		in.kept.Close()
	}
}
