package report

import "io"

// A Document is a report without the syntax of any rendering: headings, paragraphs, lists, tables
// and what is quoted. All texts in it are visible; each printer escapes them for its syntax. It is
// built once, and a printer is a function of it.
type Document struct {
	nodes []node
	only  audience  // of what is added next
	foot  footnotes // of the table that is being built
	used  string    // every mark that stands behind a figure
}

// A node is a part of a document: heading, para, *Table, verbatim, fold or gap.
type node struct {
	only audience
	is   any
}

// An audience is who gets to see a part. A terminal is brief, and refers to report.md.
type audience int

const (
	everyone audience = iota
	brief             // terminals
	full              // files, which have room for everything
)

type (
	// A heading of level 1 is the document's title, 2 opens a section, 3 a part of it.
	heading struct {
		level int
		title string
		key   string // a name behind it
		state Span   // how it went, behind it
	}
	// A para is a paragraph, and an item of a list where it has a mark.
	para struct {
		indent int // levels
		mark   Span
		text   []Span
	}
	// A verbatim is lines that are shown as they came: evidence, a log, a file.
	verbatim struct {
		language string
		lines    []string
		brief    []string // as a terminal has them
		most     int      // lines of a terminal
		more     string   // what further lines are called there; "" where they are not counted
		indent   int
		mark     string
		last     bool // a terminal shows the end
	}
	// A fold is what a reader may unfold: all there is of one thing.
	fold struct {
		title string // of the thing
		more  string // what is in it
		nodes []node
	}
	// A gap is an empty line where a terminal has one.
	gap struct{}
)

func (d *Document) add(parts ...any) {
	for _, x := range parts {
		d.nodes = append(d.nodes, node{d.only, x})
	}
}

// to adds for one audience alone.
func (d *Document) to(who audience, add func()) {
	was := d.only
	if was != everyone && who != everyone && who != was {
		return
	}
	d.only = max(was, who)
	add()
	d.only = was
}

// fold adds what is added in it as one thing to unfold.
func (d *Document) fold(title, more string, add func()) {
	outer := d.nodes
	d.nodes = nil
	add()
	inner := d.nodes
	d.nodes = outer
	d.add(fold{title, more, inner})
}

// Title adds the title of the document.
func (d *Document) Title(text string) { d.add(heading{level: 1, title: text}) }

// Section opens a section.
func (d *Document) Section(title string) { d.add(heading{level: 2, title: title}) }

// say adds a paragraph, so many levels in.
func (d *Document) say(indent int, text string, st Style) {
	d.add(para{indent: indent, text: []Span{{text, st}}})
}

// Lead adds a paragraph that stands at the margin.
func (d *Document) Lead(text string, st Style) { d.say(0, text, st) }

// LeadCode adds one with something in it as it is typed.
func (d *Document) LeadCode(before, typed, after string) {
	d.add(para{text: []Span{{before, Plain}, {typed, code}, {after, Plain}}})
}

// Say adds a paragraph, one level in.
func (d *Document) Say(text string, st Style) { d.say(1, text, st) }

// Gap adds an empty line where a terminal has one.
func (d *Document) Gap() { d.add(gap{}) }

// Full adds what is added in it for files alone, which have room for everything.
func (d *Document) Full(add func()) { d.to(full, add) }

func (d *Document) item(mark Span, text string, st Style) {
	d.add(para{indent: 1, mark: mark, text: []Span{{text, st}}})
}

// Items adds a list of sentences.
func (d *Document) Items(mark Span, texts []string, st Style) {
	for _, text := range texts {
		d.item(mark, text, st)
	}
}

// facts adds names with what there is to say of each.
func (d *Document) facts(names, texts Style, rows []fact) {
	n := 0
	for _, r := range rows {
		n = max(n, width(r.key))
	}
	for _, r := range rows {
		d.add(para{indent: 1, mark: Span{padRight(r.key, n+1), names}, text: []Span{{r.text, texts}}})
	}
}

// Table adds a table with the footnotes that its cells were given, unless it has no rows.
func (d *Document) Table(t *Table) {
	foot := d.foot
	if d.foot = nil; len(t.rows) == 0 {
		return
	}
	d.add(t)
	for i, text := range foot {
		d.add(para{indent: 2, mark: Span{superscript(i + 1), Dim}, text: []Span{{text, Dim}}})
	}
}

// A Table has columns that say what a row is, the labels, and columns of figures.
type Table struct {
	groups  string // what the groups of rows are called
	columns []Column
	labels  int  // how many of the columns are labels
	bars    bool // each row has a bar behind its labels
	spaced  bool // an empty line before each group
	rows    []Row
}

// NewTable makes a table with columns, of which the first says what a row is, and rows in groups,
// which are called so.
func NewTable(groups string, columns ...Column) *Table {
	return &Table{groups: groups, labels: 1, columns: columns}
}

// Add adds a row to a group.
func (t *Table) Add(group string, cells ...Cell) {
	t.rows = append(t.rows, Row{group: group, cells: cells})
}

// A Column of a table. A terminal leaves out, the highest priority first, what it has no room for
// beside bars; 0 is always shown. Other tables go on below where they are too wide.
type Column struct {
	Head     string
	Left     bool // words, which stand left; labels do anyway
	Priority int
	Full     bool              // too much for a terminal
	meaning  string            // said under the table
	cell     func(*entry) Cell // its figure of what a row is of
}

// A Row is a row of a table.
type Row struct {
	group   string
	cells   []Cell
	share   float64 // of the longest bar
	style   Style   // of the bar
	message Span    // instead of figures
}

// A Cell of a table. Marks of one column stand below one another.
type Cell struct {
	text  string
	style Style
	mark  string
	more  string // behind it in a file
}

// Text is a cell with a text in a style.
func Text(text string, st Style) Cell { return Cell{text: text, style: st} }

// Marks of list items and checks.
var (
	FailedMark  = Span{"✗", Red}
	WarningMark = Span{"!", Yellow}
	PassedMark  = Span{"✓", Green}
	DoubtMark   = Span{"?", Yellow}
	pointMark   = Span{"·", Dim}
)

// Terminal writes the document for a terminal. Errors are those of w.
func (d *Document) Terminal(w io.Writer, o TerminalOptions) error {
	s := newScreen(w, o.Width, o.Color)
	p := &terminal{screen: s}
	p.nodes(d.nodes)
	if len(o.Files) > 0 {
		p.heading(heading{level: 2, title: "Files"})
	}
	for i, path := range o.Files { // which may be wider: a path that is cut cannot be opened
		s.write("  " + Visible(path) + "\n")
		if i == 0 && o.Earlier {
			p.para(para{indent: 2, mark: WarningMark, text: []Span{{earlierText, Plain}}})
		}
	}
	return s.flush()
}

// Markdown writes the document as GitHub-flavoured Markdown that is safe to publish: nothing in it
// can add markup, links, mentions or HTML. Errors are those of w.
func (d *Document) Markdown(w io.Writer) error {
	p := &markdown{screen: newScreen(w, 0, false)}
	p.nodes(d.nodes)
	return p.flush()
}
