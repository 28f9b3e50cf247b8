package batch

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// outFlags are the two ways to treat an existing file named by --out.
type outFlags struct{ add, overwrite bool }

// bind adds --append and --overwrite to fs.
func (f *outFlags) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&f.add, "append", false, "with --out: add the lines to those that the file has")
	fs.BoolVar(&f.overwrite, "overwrite", false, "with --out: replace a file that holds something else than the lines of an earlier run of this batch")
}

// generationsMost is the number of generations of a key tried for a line of an earlier run.
const generationsMost = 20

// checkKept protects the file of --out: it asks, or returns an error, if the file has anything but lines of an earlier run of this batch. Those come again, and may be
// replaced. With --append, --overwrite or --dry-run nothing is asked.
func (f *batchFlags) checkKept(in *input.File, p *plan, s terminal.Streams) error {
	switch {
	case f.outs.add && f.outs.overwrite:
		return errors.New("--append and --overwrite: say one")
	case (f.outs.add || f.outs.overwrite) && f.out == "":
		return errors.New("--append and --overwrite are for --out")
	case f.out == "" || f.outs.add || f.outs.overwrite || f.dry:
		return nil
	}
	ours, err := f.holdsOurs(in, p)
	if ours || err != nil {
		return err
	}
	what := fmt.Sprintf("--out %s holds something else than an earlier run of this batch", f.out)
	if terminal.IsTerminal(s.In) && terminal.IsTerminal(s.Err) {
		return s.Confirm(false, what+", which is replaced") // false: no flag has said yes already
	}
	return errors.New(what + "; --append adds to it, --overwrite replaces it")
}

// holdsOurs reports whether the file of --out may be replaced: it is missing, empty, no regular file, or its first and its last line belong to rows of this input. A
// single line that a run did not finish is taken for one of ours by its beginning.
func (f *batchFlags) holdsOurs(in *input.File, p *plan) (bool, error) {
	file, err := os.Open(f.out)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("--out %s: %w", f.out, words.Pathless(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() == 0) {
		return true, nil
	}
	first, err := bufio.NewReader(io.LimitReader(file, lineMost)).ReadBytes('\n')
	if err != nil { // there is no end of a line: a run died while it wrote its first
		return bytes.HasPrefix(first, []byte(`{"row":`)), nil
	}
	lines := []results.Line{{}, {}}
	if json.Unmarshal(first, &lines[0]) != nil || json.Unmarshal(lastLine(file, info.Size()), &lines[1]) != nil {
		return false, nil
	}
	rows, err := input.NewRows(in.Name, in.Reader(), p.needs)
	for err == nil && len(lines) > 0 {
		var r input.Row
		if r, err = rows.Next(); err != nil {
			break
		}
		before := len(lines)
		lines = slices.DeleteFunc(lines, func(l results.Line) bool { return r.Number == l.Row && p.hasKey(&r, l.Key) })
		// A line of this row with a key that is none of the row's is of another input.
		if before == len(lines) && slices.ContainsFunc(lines, func(l results.Line) bool { return r.Number == l.Row }) {
			return false, nil
		}
	}
	return len(lines) == 0, nil // the check of the input reports its faults
}

// lineMost bounds the length of a line.
const lineMost = 4 * results.AnswerBytesMax

// lastLine returns the last whole line of a file; behind it a run may have died while it wrote.
func lastLine(file io.ReaderAt, size int64) []byte {
	tail := make([]byte, min(size, 2*lineMost)) // a whole line, and the beginning of another
	n, _ := file.ReadAt(tail, size-int64(len(tail)))
	tail = tail[:n]
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	tail = bytes.TrimSuffix(tail, []byte("\n"))
	return tail[bytes.LastIndexByte(tail, '\n')+1:]
}

// hasKey reports whether a key is one of the row's keys. A row has one key for each generation, a try that --generation began.
func (p *plan) hasKey(r *input.Row, key string) bool {
	for g := 1; g <= max(p.generation, generationsMost); g++ { // an earlier run may have had a later generation
		if string(p.keyOf(r, g)) == key {
			return true
		}
	}
	return false
}

// openLines opens the file of --out for the result lines, or returns stdout, and a function to close it. With --append it first ends a line that a crashed run left
// unfinished.
func (f *batchFlags) openLines(stdout io.Writer) (io.Writer, func() error, error) {
	if !f.outs.add || f.out == "" {
		return terminal.OpenOut(f.out, stdout)
	}
	fail := func(err error) error { return fmt.Errorf("--out %s: %w", f.out, words.Pathless(err)) }
	file, err := os.OpenFile(f.out, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fail(err)
	}
	last := []byte{'\n'}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		_, _ = file.ReadAt(last, info.Size()-1)
	}
	if last[0] != '\n' { // a run died while it wrote
		_, err = file.WriteString("\n")
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, fail(err)
	}
	return file, func() error {
		if err := file.Close(); err != nil {
			return fail(err)
		}
		return nil
	}, nil
}
