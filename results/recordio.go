package results

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
)

// maxRecordBytes bounds what ReadRecord takes in.
const maxRecordBytes = 256 << 20

// normalize fills in what the schema wants present even when empty.
func (r *Record) normalize() {
	r.Schema = cmp.Or(r.Schema, Schema)
	if r.Corpus.Kinds == nil {
		r.Corpus.Kinds = map[string]int{}
	}
	if r.Options == nil {
		r.Options = map[string]any{}
	}
	present(&r.Relays)
	for i := range r.Relays {
		r.Relays[i].normalize()
	}
	present(&r.Measurements)
	for i := range r.Measurements {
		present(&r.Measurements[i].Trials)
	}
	present(&r.Findings)
	present(&r.Scenarios)
	present(&r.Metrics)
}

// present makes a list that there is not an empty one.
func present[L ~[]E, E any](list *L) {
	if *list == nil {
		*list = L{}
	}
}

// normalize makes a relay that the run has not come to, or whose end nobody explained, say so.
func (r *Relay) normalize() {
	if r.Durability == "" {
		r.Durability = "unknown"
	}
	if r.Outcome == "" {
		r.Outcome, r.Reason = OutcomeSkipped, "the run has not come to it"
	}
	if r.Outcome != OutcomeOK && r.Reason == "" {
		r.Reason = "no reason was recorded"
	}
}

// Write replaces the file at path with the record, all of it or nothing: it writes and syncs a
// temporary file in the same folder and renames it, so that a reader or a crash meets either the
// old record or the new one. Errors are one sentence and name the folder and the remedy when the
// disk is full or cannot be written to.
func (r *Record) Write(path string) error {
	c := clone(*r)
	c.normalize()
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".results-*.tmp")
	if err != nil {
		return writeError(path, err)
	}
	defer os.Remove(f.Name()) // after the rename there is nothing of that name left
	// CreateTemp makes files for their owner alone; results are there to be shared.
	if err = f.Chmod(0o644); err == nil {
		err = encodeJSON(f, &c)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return writeError(path, err)
	}
	// This makes the rename last. Not all file systems can, and the record is whole either way.
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
	return nil
}

func encodeJSON(f io.Writer, r *Record) error {
	w := bufio.NewWriterSize(f, 1<<16)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(r); err != nil {
		return err
	}
	return w.Flush()
}

func writeError(path string, err error) error {
	dir, unsaved := filepath.Dir(path), "so the results stay unsaved"
	if _, absent := os.Stat(path); absent == nil {
		unsaved += " (" + filepath.Base(path) + " holds an earlier state)"
	}
	switch {
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return fmt.Errorf("the folder %s cannot be written to, %s; choose another with --out: %w", dir, unsaved, err)
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of %s is full, %s; free some space or choose another folder with --out: %w", dir, unsaved, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder %s does not exist, %s: %w", dir, unsaved, err)
	}
	return fmt.Errorf("writing the results to %s: %w", path, err)
}

// FileError names a file that cannot be read as a record, and what is wrong with it.
type FileError struct{ err error }

func (e *FileError) Error() string { return e.err.Error() }
func (e *FileError) Unwrap() error { return e.err }

// ReadRecord reads a results file of at most 256 MiB. Every error is a *FileError.
func ReadRecord(path string) (*Record, error) {
	r, err := readRecord(path)
	if err != nil {
		return nil, &FileError{err}
	}
	return r, nil
}

func readRecord(path string) (*Record, error) {
	// Asked before opening: to open a named pipe would wait for a writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	switch {
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; name the results.json in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file; name a results.json", path)
	case info.Size() == 0:
		return nil, fmt.Errorf("%s is empty; a results.json was expected", path)
	case info.Size() > maxRecordBytes:
		return nil, fmt.Errorf("%s is larger than %d MiB, which no results.json is", path, maxRecordBytes>>20)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading results: %w", err)
	}
	r, err := parseRecord(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Hash tells records apart by all that they say, whatever their files are called or how they are
// indented. An error is that of a value that JSON cannot hold, which no record has that was read.
func (r *Record) Hash() (sum [sha256.Size]byte, err error) {
	b, err := json.Marshal(r)
	return sha256.Sum256(b), err
}

func parseRecord(b []byte) (*Record, error) {
	// The schema id comes first: a file of another form is not to be faulted for a field.
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return nil, jsonError(err, len(b))
	}
	if err := checkForm(b); err != nil {
		return nil, err
	}
	r := new(Record)
	var err error
	switch {
	case head.Schema == nil:
		return nil, errors.New("this is not a results.json of relaybench: it has no schema id")
	case *head.Schema == schema1:
		r, err = upgrade1(b)
	case *head.Schema != Schema:
		return nil, fmt.Errorf("its schema is %.60q, and this relaybench reads %q and %q: a newer one reads it", *head.Schema, Schema, schema1)
	default:
		if err = json.Unmarshal(b, r); err != nil {
			err = jsonError(err, len(b))
		}
	}
	if err == nil {
		err = r.withinLimits()
	}
	if err == nil {
		err = r.validate(*head.Schema)
	}
	if err != nil {
		return nil, err
	}
	r.explain()
	r.normalize()
	return r, nil
}

// typeName is what a JSON value is called that a Go type takes in.
func typeName(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return cmp.Or(map[reflect.Kind]string{reflect.String: "text", reflect.Bool: "true or false", reflect.Slice: "a list", reflect.Array: "a list",
		reflect.Struct: "an object", reflect.Map: "an object"}[t.Kind()], "a number")
}

// mostListed bounds each list of a record before any is read into memory.
const mostListed = 2 * MaxMeasurements

// checkForm refuses lists without bound, and what a JSON reader passes over in silence, and names
// the place: an object with a field twice, and null among the objects of a list. b is JSON.
func checkForm(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	var path []string
	place := func() string { return strings.TrimPrefix(strings.Join(path, ""), ".") }
	var check func(inList bool) error
	check = func(inList bool) error {
		token, err := d.Token()
		if err != nil {
			return nil // its end, as all of it has been read before
		}
		depth := len(path)
		if token == nil && inList && depth == 2 {
			return fmt.Errorf("%.60q is null, and has to be an object", place())
		}
		if token != json.Delim('{') && token != json.Delim('[') {
			return nil
		}
		path = append(path, "")
		named := map[string]bool{}
		for n := 1; d.More(); n++ {
			if token == json.Delim('[') {
				if depth == 1 && n > mostListed {
					return fmt.Errorf("its list %.60q is longer than %d, and a results.json has no such list", strings.TrimPrefix(path[0], "."), mostListed)
				}
				path[depth] = " " + strconv.Itoa(n)
			} else {
				key, _ := d.Token()
				field := key.(string)
				path[depth] = "." + field
				if depth == 0 || inList { // not of names that are anybody's: fields in either case are one
					field = strings.ToLower(field)
				}
				if named[field] {
					return fmt.Errorf("the field %.120q is there twice", place())
				}
				named[field] = true
			}
			if err := check(token == json.Delim('[')); err != nil {
				return err
			}
		}
		d.Token() // what closes it
		path = path[:depth]
		return nil
	}
	return check(false)
}

func jsonError(err error, size int) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && syntax.Offset >= int64(size):
		return fmt.Errorf("the file is cut short: its JSON ends in the middle, at byte %d", size)
	case errors.As(err, &syntax):
		return fmt.Errorf("the file is not JSON: %w (byte %d)", err, syntax.Offset)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("this is not a results.json of relaybench: it holds a JSON %s where an object was expected", kind.Value)
	case errors.As(err, &kind):
		article := "a"
		if kind.Value == "object" || kind.Value == "array" {
			article = "an"
		}
		return fmt.Errorf("the field %s holds %s %s where relaybench expects %s", kind.Field, article, kind.Value, typeName(kind.Type))
	}
	return fmt.Errorf("the file cannot be read as results: %w", err)
}
