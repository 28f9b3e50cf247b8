// Package zero holds every exported function and method to what nil and zero values get: an error, or a panic that its
// documentation names, on the caller's goroutine, and nothing held afterwards.
package zero_test

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// TestZeroFunctions calls each exported function with nothing in it. What returns an error returns one, and does not panic.
func TestZeroFunctions(t *testing.T) {
	docs := documented(t)
	for name, f := range functions() {
		t.Run(name, func(t *testing.T) {
			v := reflect.ValueOf(f)
			withNil := takesContext(v.Type())
			end := call(v, nothing(v.Type(), ended()))
			doc := docs[name]
			if slices.ContainsFunc(nothing(v.Type(), ended()), isNil) {
				doc = doc.withNil()
			}
			end.check(t, doc)
			if end.panicked != nil && returnsError(v.Type()) && !strings.Contains(docs[name].own, "panics") {
				t.Errorf("it panics (%v), and returns an error for other mistakes", end.panicked)
			}
			if withNil {
				call(v, nothing(v.Type(), nil)).check(t, docs[name].withNil())
			}
		})
	}
}

// TestZeroMethods calls each method of each type on nil and on the zero value: with nothing in it, and with a valid record
// where it takes one. Then it calls all of them, twice, on one zero value: no panic has left a lock behind.
func TestZeroMethods(t *testing.T) {
	docs := documented(t)
	for _, zero := range types() {
		p := reflect.TypeOf(zero)
		t.Run(p.Elem().String(), func(t *testing.T) {
			worn := reflect.New(p.Elem())
			for i := range p.NumMethod() {
				m := p.Method(i)
				_, ofValue := p.Elem().MethodByName(m.Name)
				doc := commentOf(docs, p.Elem(), m.Name)
				for _, args := range [][]reflect.Value{nothing(m.Type, lasting())[1:], valid(m.Type)[1:]} {
					if !ofValue { // Go itself panics for those
						end := call(reflect.Zero(p).Method(i), args)
						end.check(t, doc.withNil())
						end.refuses(t, p.Elem(), m.Name)
					}
					if slices.ContainsFunc(args, isNil) {
						doc = doc.withNil()
					}
					end := call(reflect.New(p.Elem()).Method(i), args)
					end.check(t, doc)
					end.refuses(t, p.Elem(), m.Name)
					call(worn.Method(i), args).check(t, doc)
					call(worn.Method(i), args).check(t, doc)
				}
			}
		})
	}
}

// TestZeroIsWhole: every exported function, and every exported type with methods, of every public package has a row.
func TestZeroIsWhole(t *testing.T) {
	has := map[string]bool{}
	for name := range functions() {
		has[name] = true
	}
	for _, zero := range types() {
		p := reflect.TypeOf(zero)
		has[p.Elem().String()] = true
		for i := range p.NumMethod() {
			has[p.Elem().String()+"."+p.Method(i).Name] = true
		}
	}
	for name := range documented(t) {
		if !has[name] {
			t.Errorf("%s has no row in functions or types", name)
		}
	}
}

// refuses checks the error of a Client, a Journal or a Sealer that was not made.
func (e told) refuses(t *testing.T, of reflect.Type, method string) {
	t.Helper()
	if len(e.results) == 0 || e.panicked != nil {
		return
	}
	last := e.results[len(e.results)-1]
	err, _ := last.Interface().(error)
	switch {
	case last.Type() != errorType && err == nil:
	case of == reflect.TypeFor[oncehttp.Client]():
		verdicts := 0
		for _, verdict := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
			if errors.Is(err, verdict) {
				verdicts++
			}
		}
		about := (*oncehttp.Error)(nil)
		if !errors.Is(err, oncehttp.ErrConfig) || errors.As(err, &about) && (verdicts != 1 || !errors.Is(err, oncehttp.ErrOutcomeUnknown)) {
			t.Errorf("%s of a Client that nobody made: %v; want ErrConfig, and of an operation ErrOutcomeUnknown", method, err)
		}
	case of.Name() == "Journal" && method != "Close":
		if !errors.Is(err, persist.ErrClosed) && !errors.Is(err, persist.ErrInvalid) {
			t.Errorf("%s of a journal that nobody opened: %v; want ErrClosed", method, err)
		}
	case of.Name() == "Sealer":
		if !errors.Is(err, persist.ErrInvalid) {
			t.Errorf("%s of a Sealer that nobody made: %v; want ErrInvalid", method, err)
		}
	}
}

// told is the end of a call: its answer or error.
type told struct {
	results  []reflect.Value
	panicked any
	hung     bool
}

// check fails the test if the call hung, or if it panicked and its documentation does not say so.
func (e told) check(t *testing.T, doc comment) {
	t.Helper()
	switch {
	case e.hung:
		t.Fatalf("%s does not return", doc.name)
	case e.panicked != nil && !doc.panics():
		t.Errorf("%s panics (%v), which its documentation does not say", doc.name, e.panicked)
	}
}

// call calls f on a goroutine of its own, as its caller, and then what f returns, if that is a function.
func call(f reflect.Value, args []reflect.Value) told {
	ended := make(chan told, 1)
	go func() {
		var end told
		defer func() {
			end.panicked = recover()
			ended <- end
		}()
		end.results = f.Call(args)
		for _, r := range end.results {
			if r.Kind() == reflect.Func && !r.IsNil() && r.Type() != optionType {
				end.results = append(end.results, iterated(r)...)
				break
			}
		}
	}()
	select {
	case end := <-ended:
		return end
	case <-time.After(5 * time.Second):
		return told{hung: true}
	}
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	optionType  = reflect.TypeFor[oncehttp.LookupOption]()
)

// iterated ranges over an iterator, and returns the last that it yields. It returns nothing for any other function.
func iterated(f reflect.Value) (last []reflect.Value) {
	t := f.Type()
	if t.NumIn() != 1 || t.NumOut() != 0 || t.In(0).Kind() != reflect.Func {
		return nil
	}
	f.Call([]reflect.Value{reflect.MakeFunc(t.In(0), func(yielded []reflect.Value) []reflect.Value {
		last = yielded
		return []reflect.Value{reflect.ValueOf(true)}
	})})
	return last
}

// nothing returns the zero arguments for a function, with ctx as its context unless that is nil.
func nothing(t reflect.Type, ctx context.Context) []reflect.Value {
	var args []reflect.Value
	for i := range t.NumIn() {
		in := t.In(i)
		switch {
		case t.IsVariadic() && i == t.NumIn()-1:
			args = append(args, reflect.Zero(in.Elem()))
		case in == contextType && ctx != nil:
			args = append(args, reflect.ValueOf(ctx))
		default:
			args = append(args, reflect.Zero(in))
		}
	}
	return args
}

// valid is nothing, with a record, a request and a key that are valid where the function takes them.
func valid(t reflect.Type) []reflect.Value {
	args := nothing(t, lasting())
	for i := 1; i < t.NumIn(); i++ {
		switch t.In(i) {
		case reflect.TypeFor[persist.Record]():
			args[i] = reflect.ValueOf(record(t))
		case reflect.TypeFor[persist.ID]():
			args[i] = reflect.ValueOf(record(t).ID)
		case reflect.TypeFor[oncehttp.Key]():
			args[i] = reflect.ValueOf(oncehttp.Key("order:7"))
		case reflect.TypeFor[*http.Request]():
			req, _ := http.NewRequest("POST", "http://127.0.0.1:1/payments", strings.NewReader("{}"))
			args[i] = reflect.ValueOf(req)
		}
	}
	return args
}

// record is a valid record: final for a method that returns an error alone, which Finish does.
func record(t reflect.Type) persist.Record {
	rec := persist.Record{
		ID: persist.ID{Key: "order:7"}, Method: "POST", Origin: "http://127.0.0.1:1", Target: "/", WireKey: "order:7",
		Fingerprint: make([]byte, 32), Created: time.Unix(1, 0), Revision: 1, Seq: 1,
	}
	if t.NumOut() == 1 {
		rec.State, rec.Finished = persist.StateAbandoned, time.Unix(2, 0)
	}
	return rec
}

// lasting is a context that outlasts a call that does not wait.
func lasting() context.Context { return context.Background() }

// ended is a context that has ended: what a function would open is not there.
func ended() context.Context {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	return ctx
}

// isNil reports whether an argument is a nil pointer, function or interface.
func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Interface:
		return v.IsNil()
	}
	return false
}

func takesContext(t reflect.Type) bool { return t.NumIn() > 0 && t.In(0) == contextType }

func returnsError(t reflect.Type) bool { return t.NumOut() > 0 && t.Out(t.NumOut()-1) == errorType }

// commentOf is the comment of a method, or, where it is that of an embedded type, of its receiver's.
func commentOf(docs map[string]comment, of reflect.Type, method string) comment {
	c, declared := docs[of.String()+"."+method]
	if !declared {
		c = docs[of.String()]
		c.name, c.own = of.String()+"."+method, ""
	}
	return c
}
