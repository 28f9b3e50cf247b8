package oncehttp

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"testing"

	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
)

// TestRoomsHaveTheSameFields: each field of a public type has one of the same name in package run, and the other way round.
func TestRoomsHaveTheSameFields(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[Config](), reflect.TypeFor[run.Config]()},
		{reflect.TypeFor[Policy](), reflect.TypeFor[run.Policy]()},
		{reflect.TypeFor[Event](), reflect.TypeFor[run.Event]()},
		{reflect.TypeFor[Result](), reflect.TypeFor[run.Result]()},
		{reflect.TypeFor[Resolution](), reflect.TypeFor[run.Resolution]()},
		{reflect.TypeFor[Error](), reflect.TypeFor[run.Error]()},
	} {
		for i, of := range pair {
			for _, field := range reflect.VisibleFields(of) {
				if _, there := pair[1-i].FieldByName(field.Name); !there && field.IsExported() && !insideOnly[field.Name] {
					t.Errorf("%v has %s, and %v has not", of, field.Name, pair[1-i])
				}
			}
		}
	}
}

// insideOnly are fields of package run that users do not see: one says what NewKey is, the other is what an error's methods tell.
var insideOnly = map[string]bool{"ReadsKey": true, "Said": true}

// filled returns a value of a struct type in which each exported field is set; functions are given.
func filled[T any](t *testing.T, functions map[string]any) T {
	t.Helper()
	var v T
	s := reflect.ValueOf(&v).Elem()
	for i := range s.NumField() {
		field, name := s.Field(i), s.Type().Field(i).Name
		if !s.Type().Field(i).IsExported() {
			continue
		}
		if f, given := functions[name]; given {
			field.Set(reflect.ValueOf(f))
			continue
		}
		set(t, field, name, i+1)
	}
	return v
}

// set sets a field to a value of its own.
func set(t *testing.T, field reflect.Value, name string, n int) {
	t.Helper()
	switch field.Kind() {
	case reflect.String:
		field.SetString(name)
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Uint8, reflect.Uint64:
		if field.CanInt() {
			field.SetInt(int64(n))
		} else {
			field.SetUint(uint64(n))
		}
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), n, n))
	case reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	case reflect.Struct:
		if f := field.FieldByName("wall"); f.IsValid() { // a time
			return
		}
		for i := range field.NumField() {
			if field.Type().Field(i).IsExported() {
				set(t, field.Field(i), name+"."+field.Type().Field(i).Name, n+i)
			}
		}
	case reflect.Func, reflect.Interface:
		t.Fatalf("the test gives no value for %s", name)
	default:
		t.Fatalf("the test knows no value for %s, a %v", name, field.Type())
	}
}

// sameFields fails for each field of inner that is not as in public. Functions and times are left to other tests.
func sameFields(t *testing.T, public, inner any) {
	t.Helper()
	p, in := reflect.ValueOf(public), reflect.ValueOf(inner)
	for i := range p.NumField() {
		name := p.Type().Field(i).Name
		if !p.Type().Field(i).IsExported() {
			continue
		}
		a, b := p.Field(i), in.FieldByName(name)
		switch {
		case a.Kind() == reflect.Func, name == "Instrument":
			if b.IsNil() {
				t.Errorf("%s is not handed on", name)
			}
		case a.Kind() == reflect.Struct && a.Type() != b.Type():
			sameFields(t, a.Interface(), b.Interface())
		case a.CanConvert(b.Type()) && !reflect.DeepEqual(a.Convert(b.Type()).Interface(), b.Interface()), !a.CanConvert(b.Type()):
			t.Errorf("%s is %v, and %v inside", name, a, b)
		}
	}
}

// TestEachFieldIsHandedOn: each field of a Config reaches package run, and each of an event, a result and an error comes back.
func TestEachFieldIsHandedOn(t *testing.T) {
	t.Parallel()
	given := map[string]any{}
	for name, f := range configFunctions() {
		given[name] = f
	}
	cfg := filled[Config](t, given)
	sameFields(t, cfg, cfg.inner())
	resolution := filled[Resolution](t, nil)
	sameFields(t, resolution, resolution.inner())

	cause := errors.New("a cause")
	event := filled[run.Event](t, map[string]any{"Err": cause})
	sameFields(t, eventOf(&event), event)
	result := filled[run.Result](t, nil)
	sameFields(t, resultOf(result), result)
	failed := filled[run.Error](t, map[string]any{"Cause": cause, "Last": cause, "Said": run.Said{}})
	back := errorOf(&failed).(*Error)
	sameFields(t, *back, failed)
	sameFields(t, *back, *back.inner())
}

// configFunctions are the functions of a Config, and what else reflection makes no value of.
func configFunctions() map[string]any {
	cfg := Config{
		Journal: nil, Transport: http.DefaultTransport,
		NewKey: func(*http.Request) (Key, error) { return "", nil },
	}
	all := map[string]any{}
	v := reflect.ValueOf(cfg)
	for i := range v.NumField() {
		field, name := v.Field(i), v.Type().Field(i).Name
		switch {
		case field.Kind() == reflect.Func:
			all[name] = reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { return nil }).Interface()
		case name == "Journal":
			all[name] = attachedTo{}
		case name == "Transport":
			all[name] = cfg.Transport
		case name == "Instrument":
			all[name] = instrumentNothing{}
		}
	}
	return all
}

// instrumentNothing is an Instrument that does nothing.
type instrumentNothing struct{}

func (instrumentNothing) Operation(ctx context.Context, _ Event) (context.Context, func(Event)) {
	return ctx, nil
}
func (instrumentNothing) Attempt(ctx context.Context, _ Event) (context.Context, func(Event)) {
	return ctx, nil
}

// TestConstantsAreTheSame: outcomes, sources and kinds of events have the same values in package run.
func TestConstantsAreTheSame(t *testing.T) {
	t.Parallel()
	outcomes := map[Outcome]run.Outcome{
		OutcomeUnknown: run.OutcomeUnknown, OutcomeNotSent: run.OutcomeNotSent, OutcomeRefused: run.OutcomeRefused,
		OutcomeInFlight: run.OutcomeInFlight, OutcomeConfirmed: run.OutcomeConfirmed, OutcomeMismatch: run.OutcomeMismatch,
		OutcomeExpired: run.OutcomeExpired, OutcomeAccepted: run.OutcomeAccepted,
	}
	if last := run.Outcome(len(outcomes)); last.String() != "unknown" {
		t.Errorf("package run has the outcome %v, and this table has not", last)
	}
	for public, inner := range outcomes {
		if uint8(public) != uint8(inner) {
			t.Errorf("%v is %d, and %d inside", public, public, inner)
		}
	}
	for public, inner := range map[Source]run.Source{SourceServer: run.SourceServer, SourceReplay: run.SourceReplay, SourceJournal: run.SourceJournal} {
		if uint8(public) != uint8(inner) {
			t.Errorf("%v is %d, and %d inside", public, public, inner)
		}
	}
	for public, inner := range map[RequestKeeping]run.RequestKeeping{
		KeepRequestAsNeeded: run.RequestAsNeeded, DropRequestAfterSuccess: run.RequestUntilSuccess,
		KeepRequestWithAnswer: run.RequestWithAnswer, DropRequestAfterEnd: run.RequestUntilEnd,
	} {
		if uint8(public) != uint8(inner) {
			t.Errorf("%v is %d, and %d inside", public, public, inner)
		}
	}
	for public, inner := range map[EventKind]run.EventKind{
		EventBegun: run.EventBegun, EventAttempt: run.EventAttempt, EventAnswered: run.EventAnswered, EventWaiting: run.EventWaiting,
		EventFinished: run.EventFinished, EventRecorded: run.EventRecorded, EventBlocked: run.EventBlocked, EventUnserved: run.EventUnserved,
		EventListening: run.EventListening, EventPolling: run.EventPolling,
	} {
		if string(public) != string(inner) {
			t.Errorf("%v is %v inside", public, inner)
		}
	}
}

// TestErrorsAroundOthersAreFound: an error of package run that another wraps is found as one of this package.
func TestErrorsAroundOthersAreFound(t *testing.T) {
	t.Parallel()
	whole := errors.Join(&run.Error{Op: "rekey", Cause: context.Canceled}, http.ErrNotSupported)
	err := errorOf(whole)
	var about *Error
	if !errors.As(err, &about) || about.Op != "rekey" || !errors.Is(err, http.ErrNotSupported) || !errors.Is(err, ErrOutcomeUnknown) || err.Error() != whole.Error() {
		t.Errorf("%#v, %v", about, err)
	}
}

// attachedTo is a journal, of which nothing is called.
type attachedTo struct{ persist.Journal }
