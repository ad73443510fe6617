"""A template names what the slice needs and leaves it open."""

from pipesim.launches.guess import SIZE, with_sizes
from pipesim.launches.offline import MAX_SHARED
from pipesim.ptx.flow.slice import slice_of
from pipesim.ptx.launch.file import launch_json, read_launch
from pipesim.ptx.launch.settings import open_words, template, with_settings
from pipesim.ptx.launch.values import Field, Launch, Number, Parameter, Pointer, Struct, TensorMap
from tests.support.ptx_text import kernel

PARAMS = (
    ".param .align 64 .b8 map[128], .param .u32 n, .param .f32 scale, .param .u64 .ptr .global .align 16 p, "
    ".param .u64 q, .param .align 64 .b8 args[256], .param .u64 out, .param .u64 stride, .param .align 8 .b8 rest[24]"
)
BODY = """ld.param.u32 %r1, [n];
ld.param.u64 %rd1, [q];
ld.global.u32 %r2, [%rd1];
ld.param.u32 %r3, [args+8];
ld.param.u64 %rd2, [args+16];
atom.global.add.u32 %r4, [%rd2], 1;
mov.b64 %rd3, args;
add.s64 %rd4, %rd3, 64;
cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd4, {0}], [%r2];
bar.sync %r3, %r4;
ld.param.u64 %rd5, [out]; ld.param.u64 %rd6, [stride]; ld.param.u64 %rd7, [rest+8];
cvta.to.global.u64 %rd8, %rd5; mad.lo.s64 %rd9, %rd6, 4, %rd8; st.global.u64 [%rd9], %rd6; st.global.u64 [%rd7], %rd6;
ret;"""


def test_a_template():
    function = kernel(BODY, PARAMS, directives=".maxntid 384 .reqnctapercluster 2, 1 .maxnreg 168")
    made = template(function, slice_of(function))
    contents = (
        TensorMap(),
        Number("u32", None),
        Number("f32", 0),
        Pointer(),
        Pointer(),
        Struct(256, (Field(8, Number("u32", None)), Field(16, Pointer()), Field(64, TensorMap()))),
        Pointer(),  # these decide nothing but where is stored
        Number("u64", None),
        Struct(24, (Field(8, Pointer()),)),
    )
    parameters = tuple(Parameter("", each) for each in contents)
    assert made == Launch("k", (2, 1, 1), (384, 1, 1), (2, 1, 1), 0, 168, parameters)
    assert read_launch(launch_json(made), "k.json") == made
    assert open_words(made, function) == (128, 200, 456)
    filled = with_settings(made, function, ("128=3", "200=7", "456=8"))
    assert open_words(filled, function) == ()
    assert filled.parameters[5].content == Struct(
        256, (Field(8, Number("u32", 7)), Field(16, Pointer()), Field(64, TensorMap()))
    )


def test_an_array_of_pointers_that_is_indexed_has_pointers():
    copied = """.local .align 16 .b8 table[16];
    mov.u64 %rd1, table; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2;
    ld.param.v2.u64 {%rd4, %rd5}, [peers]; st.local.v2.u64 [%rd1], {%rd4, %rd5};
    ld.local.u64 %rd6, [%rd3]; add.s64 %rd7, %rd6, 16; st.volatile.global.u32 [%rd7], %r1;\n"""
    for more, pointers in (
        ("ret;", (0, 8)),
        ("ld.local.u64 %rd8, [%rd3]; cvt.u32.u64 %r2, %rd8; bar.sync %r2; ret;", ()),
    ):
        function = kernel(copied + more, ".param .align 16 .b8 peers[16]")
        made = template(function, slice_of(function)).parameters[0].content
        assert isinstance(made, Struct)
        assert tuple(each.offset for each in made.fields if each.content == Pointer()) == pointers


def test_a_pointer_that_is_given_to_a_call_is_one():
    for other, content in (("%rd1", Pointer()), ("%rd3", Number("u64", None))):
        call = f"""ld.param.u64 %rd1, [y]; mov.u64 %rd3, 7; .param .b64 given; st.param.b64 [given+0], %rd1;
        st.param.b64 [given+0], {other}; ld.param.u64 %rd2, [given]; atom.add.u32 %r1, [%rd2], 1; ret;"""
        function = kernel(call, ".param .u64 y")
        assert template(function, slice_of(function)).parameters[0].content == content


def test_a_map_that_a_kernel_writes_is_led_to_by_a_pointer_and_leads_to_memory_by_one():
    text = """ld.param.u64 %rd1, [maps]; ld.param.u64 %rd2, [x]; add.s64 %rd3, %rd1, 128; mov.u32 %r1, 0;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd2;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd3], [%r1], 128; ret;"""
    function = kernel(text, ".param .u64 maps, .param .u64 x")
    assert {each.content for each in template(function, slice_of(function)).parameters} == {Pointer()}


def test_shared_memory_that_is_guessed_is_all_that_a_cta_can_have_with_its_variables():
    variables = ".extern .shared .align 128 .b8 more[];\n.shared .align 4 .b8 few[4];\n"
    function = kernel("st.shared.u32 [few], 1; st.shared.u32 [more], 1; ret;", before=variables)
    made, said = with_sizes(Launch("k", (1, 1, 1), (32, 1, 1)), function, SIZE, told=False)
    assert function.shared_bytes(made.dynamic_shared) == MAX_SHARED
    assert said["shared"] == "shared 232,320"
