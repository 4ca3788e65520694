package jsonvalue_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/test/must"
)

// FuzzRead requires that values are read as encoding/json reads them, and written as they were.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{}`, ` { "a" : [ 1 , -2.50e3 , true , false , null , { } , [ ] ] , "a b" : "c,:d" } `, `[]`, `"x"`, `7`, `null`,
		`{"\u0061":"\ud83d\ude00 \"quoted\" \\","a":"second"}`, "{\"\xff\":\"\xfe\"}", `{"big":1e400}`, `{"a":"\\"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want any
		invalid := json.Unmarshal(text, &want)
		var object jsonvalue.Object
		if err := json.Unmarshal(text, &object); err == nil {
			wantSame(t, object, want)
		} else if _, isObject := want.(map[string]any); isObject && invalid == nil {
			t.Fatalf("%s is not read: %v", text, err)
		}
		value, err := jsonvalue.Parse(text)
		if !json.Valid(text) {
			return
		}
		if err != nil {
			t.Fatalf("%s is not parsed: %v", text, err)
		}
		if invalid == nil {
			wantSame(t, value, want)
		}
		again, err := jsonvalue.Parse(mustMarshal(t, value))
		if err != nil || !reflect.DeepEqual(again, value) {
			t.Fatalf("%s is %v, and after it is written %v, %v", text, value, again, err)
		}
	})
}

// wantSame requires that a value means the same as one that encoding/json has read.
func wantSame(t *testing.T, value jsonvalue.Value, want any) {
	t.Helper()
	var got any
	if err := json.Unmarshal(mustMarshal(t, value), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, want %v", value, want)
	}
}

func mustMarshal(t *testing.T, value jsonvalue.Value) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	must.Succeed(t, err)
	return text
}

func TestParse(t *testing.T) {
	value, err := jsonvalue.Parse([]byte(`{"n":1.50,"f":true,"t":"x","l":[{"a":null},7],"o":{}} and more`))
	want := jsonvalue.Object{
		"n": jsonvalue.Exact("1.50"), "f": jsonvalue.Flag(true), "t": jsonvalue.Text("x"), "o": jsonvalue.Object{},
		"l": jsonvalue.List{jsonvalue.Object{"a": nil}, jsonvalue.Exact("7")},
	}
	if err != nil || !reflect.DeepEqual(value, want) {
		t.Fatalf("got %#v, %v", value, err)
	}
	o := want
	if o.Text("t") != "x" || o.Text("n") != "" || !o.Flag("f") || o.Flag("t") || o.Inner("o") == nil || o.Inner("t") != nil ||
		len(o.Objects("l")) != 1 || len(o.List("l")) != 2 {
		t.Error("a member is not read")
	}
	for _, text := range []string{`{`, ``, `{"a":}`, `[1,]`, `nul`} {
		if _, err := jsonvalue.Parse([]byte(text)); err == nil {
			t.Errorf("%q is parsed", text)
		}
	}
}

// TestParseObject checks that a text is one object without a member that is there twice, however it is
// spelled and wherever it is.
func TestParseObject(t *testing.T) {
	got, err := jsonvalue.ParseObject([]byte(` {"a":{"b":1.0,"B":[{"b":2}]},"b":null} `))
	want := jsonvalue.Object{
		"a": jsonvalue.Object{"b": jsonvalue.Exact("1.0"), "B": jsonvalue.List{jsonvalue.Object{"b": jsonvalue.Exact("2")}}}, "b": nil,
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{
		``, `null`, `[]`, `"a"`, `7`, `{}{}`, `{} x`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{"a":[{"b":1,"b":null}]}`, `{"":1,"":2}`,
	} {
		if got, err := jsonvalue.ParseObject([]byte(text)); err == nil {
			t.Errorf("%s is %v", text, got)
		}
	}
}
