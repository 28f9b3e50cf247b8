package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"os"
)

// input is a batch's file, which is read twice: once to check every row, once to
// send. What cannot be read twice (stdin, a pipe) is spooled. A gzip file is
// unpacked while it is read.
type input struct {
	name   string
	file   *os.File // nil: kept
	kept   *spool
	zipped bool
	form   textForm
}

// spoolBytesMax is how much of what cannot be read twice is kept in memory.
const spoolBytesMax = 8 << 20

// openInput opens name; "-" is stdin. What has to be kept goes to spoolDir.
func openInput(name string, stdin io.Reader, spoolDir string) (*input, error) {
	if name == "-" {
		return keepInput("stdin", stdin, spoolDir)
	}
	fail := func(err error) (*input, error) {
		return nil, &inputError{file: name, err: pathless(err)}
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
		return (&input{name: name, file: f}).sniff()
	}
	defer f.Close()
	if err != nil {
		return fail(err)
	}
	return keepInput(name, f, spoolDir)
}

// keepInput reads r to its end.
func keepInput(name string, r io.Reader, dir string) (*input, error) {
	in := &input{name: name, kept: &spool{dir: dir, limit: spoolBytesMax}}
	if _, err := io.Copy(in.kept, r); err != nil {
		in.close()
		return nil, &inputError{file: name, err: pathless(err)}
	}
	return in.sniff()
}

// sniff sees whether the input is packed, and how its text is written: the two bytes that
// gzip begins with (RFC 1952 section 2.3.1) begin no text.
func (in *input) sniff() (*input, error) {
	var magic [2]byte
	_, err := io.ReadFull(in.raw(), magic[:])
	in.zipped = err == nil && magic == [2]byte{0x1f, 0x8b}
	in.form = formOf(in.unpacked())
	return in, nil
}

// notes are lines for whoever may have meant something else than what was found. given is --delimiter.
func (in *input) notes(given rune) []string { return in.form.notes(in.name, given) }

// raw starts from the beginning. The file stays the same one even if another
// takes its name meanwhile.
func (in *input) raw() io.Reader {
	if in.file == nil {
		return in.kept.reader()
	}
	return io.NewSectionReader(in.file, 0, math.MaxInt64)
}

// reader starts from the beginning, unpacked, as UTF-8 with lines that end in LF or CR LF.
func (in *input) reader() io.Reader { return in.form.reader(in.unpacked()) }

// unpacked starts from the beginning, unpacked.
func (in *input) unpacked() io.Reader {
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

func (in *input) close() {
	if in.file != nil {
		_ = in.file.Close() // only read from
	}
	if in.kept != nil {
		in.kept.close()
	}
}
