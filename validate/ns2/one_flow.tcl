# One bulk flow over one link. Prints the counters at each of `marks` and cwnd every `step` seconds.
#   ns one_flow.tcl variant=Newreno window=200 queue=72
source [file join [file dirname [info script]] common.tcl]
array set param {variant Newreno window 200 queue 72 rate 8Mb delay 60ms marks "20 100" step 0.25 seed 1}
arguments param

set ns [new Simulator]
$defaultRNG seed $param(seed)
lean_packets
Agent/TCP set window_ $param(window)
set a [$ns node]
set b [$ns node]
hop $a $b $param(rate) $param(delay) $param(queue)
set queue [$ns monitor-queue $a $b ""]
foreach {tcp sink} [bulk $param(variant) $a $b 0 0] break

proc mark {} {
    global ns tcp sink queue marks
    lappend marks "{\"t\":[$ns now],[counters $tcp $sink],\"drops\":[$queue set pdrops_]}"
}
proc sample {} {
    global ns tcp cwnd param
    lappend cwnd [format %.1f [$tcp set cwnd_]]
    $ns at [expr [$ns now] + $param(step)] sample
}
proc finish {} {
    global marks cwnd param
    puts "{\"step\":$param(step),\"marks\":\[[join $marks ,]\],\"cwnd\":\[[join $cwnd ,]\]}"
    exit 0
}
foreach t $param(marks) { $ns at $t mark }
$ns at $param(step) sample
$ns at [lindex $param(marks) end] finish
$ns run
