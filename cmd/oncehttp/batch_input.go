package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// input is a batch's file, which is read twice: once to check every row, once to
// send. What cannot be read twice (stdin, a pipe) is kept: in memory up to
// spoolBytesMax, else in a temporary file beside the journal.
type input struct {
	name   string
	file   *os.File // nil: memory
	memory []byte
	remove string // the temporary file to remove, where one is still there
}

const spoolBytesMax = 8 << 20

// openInput opens name; "-" is stdin.
func openInput(name string, stdin io.Reader, spoolDir string) (*input, error) {
	if name == "-" {
		return spool("stdin", stdin, spoolDir)
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
		return &input{name: name, file: f}, nil
	}
	defer f.Close()
	if err != nil {
		return fail(err)
	}
	return spool(name, f, spoolDir)
}

func spool(name string, r io.Reader, dir string) (*input, error) {
	in := &input{name: name}
	var head bytes.Buffer
	if _, err := io.CopyN(&head, r, spoolBytesMax); errors.Is(err, io.EOF) {
		in.memory = head.Bytes()
		return in, nil
	} else if err != nil {
		return nil, &inputError{file: name, err: pathless(err)}
	}
	f, err := os.CreateTemp(dir, ".oncehttp-input-*") // mode 0600
	if err != nil {
		return nil, &inputError{file: name, err: fmt.Errorf("keeping it beside the journal: %w", err)}
	}
	in.file = f
	if os.Remove(f.Name()) != nil { // Windows removes no open file
		in.remove = f.Name()
	}
	if _, err := io.Copy(f, io.MultiReader(&head, r)); err != nil {
		in.close()
		return nil, &inputError{file: name, err: fmt.Errorf("keeping it beside the journal: %w", pathless(err))}
	}
	return in, nil
}

// reader starts from the beginning. The file stays the same one even if another
// takes its name meanwhile.
func (in *input) reader() io.Reader {
	if in.file == nil {
		return bytes.NewReader(in.memory)
	}
	return io.NewSectionReader(in.file, 0, math.MaxInt64)
}

func (in *input) close() {
	if in.file != nil {
		_ = in.file.Close() // only read from
	}
	if in.remove != "" {
		_ = os.Remove(in.remove)
	}
}
