package download

// TakeAtMost lowers how many events one REQ may be answered with.
func (o *Options) TakeAtMost(n int) { o.mostOfAnswer = n }
