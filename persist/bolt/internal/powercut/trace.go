package powercut

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Call is one system call, as far as a disk is concerned.
type Call struct {
	Name   string // fdatasync, pwrite64, …
	Thread int
	FD     int    // of the file, if the call names one; of openat the new one
	Path   string // if the call names one
	Other  string // the new name, of linkat and renameat; the target of the link, of symlinkat
	Data   []byte // of a write
	At     int64  // the place of the write, or the new length of the file
	Create bool   // openat makes the file if there is none
	Append bool   // a write; its data goes to the end of the data written before
	Failed string // the error's name, such as EIO; empty if it succeeded
}

// calls are the names of the recorded system calls.
const calls = "openat,close,pwrite64,write,ftruncate,linkat,symlinkat,unlinkat,renameat,renameat2,fsync,fdatasync,fchmod,flock,mmap"

// parse reads the system calls out of the output of strace, in the order in which they ended. A call that strace prints in two parts, since another
// thread's call came between, is put together.
func parse(r io.Reader) ([]Call, error) {
	var all []Call
	begun := map[string]string{} // by thread, calls interrupted by another thread's
	lines := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if line == "" {
			if err == io.EOF {
				return all, nil
			}
			return nil, err
		}
		thread, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		text = strings.TrimSpace(text)
		if head, unfinished := strings.CutSuffix(text, "<unfinished ...>"); unfinished {
			begun[thread] = strings.TrimSpace(head)
			continue
		}
		if strings.HasPrefix(text, "<... ") {
			_, tail, _ := strings.Cut(text, " resumed>")
			text = begun[thread] + tail
			delete(begun, thread)
		}
		call, ok, err := parseCall(text)
		if err != nil {
			return nil, err
		}
		if call.Thread, _ = strconv.Atoi(thread); ok {
			all = append(all, call)
		}
	}
}

// parseCall reads one line of strace's output without its thread. ok is false for a line that is no system call, or one that no simulated disk needs
// to see. An unknown call is an error, so that none is missed.
func parseCall(text string) (c Call, ok bool, err error) {
	// Strings are in hexadecimal, so this is no part of one.
	made, result, found := strings.Cut(text, " = ")
	name, list, isCall := strings.Cut(strings.TrimSpace(made), "(")
	if !found || !isCall || strings.HasPrefix(result, "?") {
		return Call{}, false, nil // none, or the process died in it
	}
	args := strings.Split(strings.TrimSuffix(list, ")"), ", ")
	c = Call{Name: name, FD: -1}
	if words := strings.Fields(result); words[0] == "-1" && len(words) > 1 {
		c.Failed = words[1]
	}
	number := func(i int) int64 {
		n, numErr := strconv.ParseInt(args[i], 0, 64)
		if numErr != nil && err == nil {
			err = fmt.Errorf("%s: argument %d is %q", name, i, args[i])
		}
		return n
	}
	switch name {
	case "openat":
		c.Path, c.Create = unhex(args[1]), strings.Contains(args[2], "O_CREAT")
		if n, numErr := strconv.Atoi(strings.Fields(result)[0]); numErr == nil {
			c.FD = n
		}
	case "close", "fsync", "fdatasync", "fchmod", "flock":
		c.FD = int(number(0))
	case "ftruncate":
		c.FD, c.At = int(number(0)), number(1)
	case "pwrite64", "write":
		c.FD, c.Data = int(number(0)), []byte(unhex(args[1]))
		if c.Append = name == "write"; !c.Append {
			c.At = number(3)
		}
	case "unlinkat":
		c.Path = unhex(args[1])
	case "symlinkat":
		c.Other, c.Path = unhex(args[0]), unhex(args[2])
	case "linkat", "renameat", "renameat2":
		c.Path, c.Other = unhex(args[1]), unhex(args[3])
	case "mmap":
		if c.FD = int(number(4)); c.FD < 0 {
			return Call{}, false, nil
		}
	default:
		return Call{}, false, fmt.Errorf("no call that is recorded: %s", name)
	}
	return c, true, err
}

// unhex returns the text of a string that strace has written with every byte as \xNN. Anything else is returned without its quotation marks.
func unhex(s string) string {
	s = strings.Trim(s, `"`)
	b := make([]byte, 0, len(s)/4)
	for i := 0; i+4 <= len(s); i += 4 {
		n, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
		if err != nil || s[i] != '\\' {
			return s
		}
		b = append(b, byte(n))
	}
	return string(b)
}
