package results

// AfterRun labels the calibration at the run's end.
var AfterRun = Labels{LabelWhen: "after"}

// Names of the figures of the harness itself, as they stand in the record. Those of one kind over
// several numbers of connections differ in their labels.
const (
	ClockResolution = "clock resolution"
	ClockRead       = "reading the clock"
	RecordCost      = "recording in a histogram"
	ChecksOneCore   = "signature checks, one core"
	ChecksAllCores  = "signature checks, all cores"
	EventsParsed    = "events parsed (JSON)"
	FramesScanned   = "EVENT frames scanned for their id"
	HexEncoded      = "NEG messages written as digits"
	HexDecoded      = "NEG messages read from digits"
	SyncMedian      = "fsync p50"
	SyncTail        = "fsync p99"
	EchoMedian      = "loopback echo p50"
	EchoTail        = "loopback echo p99"
	LateMedian      = "1 ms timer late under load p50"
	LateTail        = "1 ms timer late under load p99"
	CeilingPublish  = "null relay, EVENT to OK"
	CeilingReceive  = "null relay, EVENT frames received"
	CostPublish     = "harness CPU per published event"
)
