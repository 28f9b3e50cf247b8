package input

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// faultsMax bounds the number of reported faults.
const faultsMax = 20

// Faults collects the faults in the rows of an input, to report them all at once. Nothing is sent if there is any.
type Faults struct {
	list []error
	like int    // rows with just the fault of the last one
	Each bool   // rows with the same fault are said one by one
	End  string // the thing not done because of them; "": nothing was sent
}

// Full reports whether as many faults are collected as are shown, so that reading on is useless.
func (f *Faults) Full() bool { return len(f.list) >= faultsMax }

// Add collects the error of a row; nil is none. Faults like the one before are only counted, unless f.Each is set. It returns stop, all faults as one error, if no further
// row can be read after err: it is a failure of reading, or a RowError without More.
func (f *Faults) Add(err error) (stop error) {
	if err == nil {
		return nil
	}
	var ie, last *RowError
	more := errors.As(err, &ie) && ie.More
	if n := len(f.list); more && !f.Each && n > 0 && errors.As(f.list[n-1], &last) && last.Column == ie.Column && last.Err.Error() == ie.Err.Error() {
		f.like++
		return nil
	}
	f.settle()
	f.list = append(f.list, err)
	if more {
		return nil
	}
	return f.Err(f.file())
}

// settle adds the number of rows with the same fault to the text of the last fault. It is called before another fault is added, and at the end.
func (f *Faults) settle() {
	if f.like > 0 {
		last := len(f.list) - 1
		f.list[last] = fmt.Errorf("%w (%s alike)", f.list[last], words.Count(f.like, "more row"))
		f.like = 0
	}
}

// file returns the name of the input, from one of the collected errors; "" if none has it.
func (f *Faults) file() string {
	var ie *RowError
	for _, err := range f.list {
		if errors.As(err, &ie) {
			return ie.File
		}
	}
	return ""
}

// Err returns all collected faults as one error about the named file; nil if there are none. A single fault is returned as it is.
func (f *Faults) Err(file string) error {
	f.settle()
	switch {
	case len(f.list) == 0:
		return nil
	case len(f.list) == 1:
		return f.list[0]
	}
	return &FaultsError{file: file, list: f.list, end: cmp.Or(f.End, "nothing was sent")}
}

// FaultsError holds several faults. Each is printed on a line of its own.
type FaultsError struct {
	file string
	list []error
	end  string
}

// Lines returns a line for each fault, and a last line with their number and the consequence, such as "nothing was sent".
func (e *FaultsError) Lines() []string {
	var lines []string
	for _, err := range e.list {
		lines = append(lines, words.OneLine(err))
	}
	sum := fmt.Sprintf("oncehttp: %s: %d faults; %s", e.file, len(e.list), e.end)
	if len(e.list) >= faultsMax {
		sum = fmt.Sprintf("oncehttp: %s: %d faults, and there may be more; %s", e.file, len(e.list), e.end)
	}
	return append(lines, sum)
}

// Error returns all faults on one line.
func (e *FaultsError) Error() string { return strings.Join(e.Lines(), "; ") }
