package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// faults collects what is wrong with the rows of an input, so that all of it is
// said at once. Nothing is sent where there is any.
type faults struct {
	list []error
	like int    // rows with just the fault of the last one
	end  string // what was not done because of them; "": nothing was sent
}

// full reports that no more are collected.
func (f *faults) full() bool { return len(f.list) >= faultsMax }

// add takes a row's error, nil included. What makes reading on useless comes back.
func (f *faults) add(err error) (stop error) {
	if err == nil {
		return nil
	}
	var ie, last *inputError
	more := errors.As(err, &ie) && ie.more
	if n := len(f.list); more && n > 0 && errors.As(f.list[n-1], &last) && last.column == ie.column && last.err.Error() == ie.err.Error() {
		f.like++
		return nil
	}
	f.settle()
	f.list = append(f.list, err)
	if more {
		return nil
	}
	return f.err(f.file())
}

// settle writes behind the last fault how many rows have the same.
func (f *faults) settle() {
	if f.like > 0 {
		last := len(f.list) - 1
		f.list[last] = fmt.Errorf("%w (%s alike)", f.list[last], count(f.like, "more row"))
		f.like = 0
	}
}

// file is the input's name.
func (f *faults) file() string {
	var ie *inputError
	for _, err := range f.list {
		if errors.As(err, &ie) {
			return ie.file
		}
	}
	return ""
}

// err is all of it as one error: a lone one as it is.
func (f *faults) err(file string) error {
	f.settle()
	switch {
	case len(f.list) == 0:
		return nil
	case len(f.list) == 1:
		return f.list[0]
	}
	return &faultsError{file: file, list: f.list, end: cmp.Or(f.end, "nothing was sent")}
}

// faultsError is printed on a line for each fault.
type faultsError struct {
	file string
	list []error
	end  string
}

// lines are what is wrong, and the sum at the end.
func (e *faultsError) lines() []string {
	var lines []string
	for _, err := range e.list {
		lines = append(lines, oneLine(err))
	}
	sum := fmt.Sprintf("oncehttp: %s: %d faults; %s", e.file, len(e.list), e.end)
	if len(e.list) >= faultsMax {
		sum = fmt.Sprintf("oncehttp: %s: %d faults, and there may be more; %s", e.file, len(e.list), e.end)
	}
	return append(lines, sum)
}

func (e *faultsError) Error() string { return strings.Join(e.lines(), "; ") }
