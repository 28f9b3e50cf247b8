package profile_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// TestCloneSharesNothing: every field of a clone is equal, and no pointer, slice or map of it is the original's. Fields that
// are added later are covered too.
func TestCloneSharesNothing(t *testing.T) {
	t.Parallel()
	full := &profile.Profile{}
	fill(reflect.ValueOf(full).Elem())
	clone := full.Clone()
	if !reflect.DeepEqual(clone, full) {
		t.Errorf("the clone differs:\n%+v\n%+v", clone, full)
	}
	sameMemory(t, "Profile", reflect.ValueOf(full), reflect.ValueOf(clone))
	if (*profile.Profile)(nil).Clone() != nil {
		t.Error("the clone of nil is not nil")
	}
}

// fill puts something into every exported field below v.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 4))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(2)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic(v.Type().String())
	}
}

// sameMemory reports pointers, slices and maps that a and b share.
func sameMemory(t *testing.T, at string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", at)
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() {
			sameMemory(t, at, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			sameMemory(t, at+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
		}
	case reflect.Slice:
		for i := range a.Len() {
			sameMemory(t, at+"[]", a.Index(i), b.Index(i))
		}
	}
}

// TestDifferences: a change of any field that a program reads shows, under a name of it; texts for people do not count,
// nor does an empty list in place of none.
func TestDifferences(t *testing.T) {
	t.Parallel()
	forPeople := []string{"Title", "Reconcile", "Notes", "Sources", "Doubted"}
	typ := reflect.TypeFor[profile.Profile]()
	for i := range typ.NumField() {
		p, q := profile.Draft07(), profile.Draft07()
		field := reflect.ValueOf(q).Elem().Field(i)
		field.SetZero()
		fill(field)
		name := typ.Field(i).Name
		if got := p.Differences(q); (len(got) == 0) != slices.Contains(forPeople, name) || len(got) > 1 {
			t.Errorf("with another %s, %v differ", name, got)
		}
	}
	none, empty := &profile.Profile{}, &profile.Profile{Methods: []string{}, Mismatch: []profile.Matcher{}}
	if got := none.Differences(empty); got != nil {
		t.Errorf("empty lists differ from none: %v", got)
	}
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		q, _ := profile.ByName(name)
		if got := p.Differences(q.Clone()); got != nil {
			t.Errorf("two copies of %s differ: %v", name, got)
		}
	}
}

// TestByNameGivesCopies: whoever changes a profile changes no other copy of it, be it the first one or a later one.
func TestByNameGivesCopies(t *testing.T) {
	t.Parallel()
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		want := p.Clone()
		for range 2 {
			p.Name = "changed"
			for _, list := range [][]profile.Matcher{p.AlreadyDone, p.Duplicate, p.Mismatch, p.InProgress, p.Stored.Client} {
				for i := range list {
					list[i].Pointer = "/changed"
					for k := range list[i].Status {
						list[i].Status[k] = 999
					}
				}
			}
			clear(p.Sources)
			if p, _ = profile.ByName(name); !reflect.DeepEqual(p, want) {
				t.Errorf("%s: %+v, want %+v", name, p, want)
			}
		}
	}
}
