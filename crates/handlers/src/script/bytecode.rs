//! Scripts as bytecode: compiled where the engine can compile, loaded and run where it cannot.

#![expect(unsafe_code, reason = "rquickjs has bytecode for modules only, and scripts are none")]

use rquickjs::{Ctx, Error, Result, Value, qjs};
use std::ffi::CString;

/// Bytecode made by this process. There is no way to make one from other bytes: the engine trusts what it loads.
#[derive(Debug)]
pub(super) struct Bytecode(Vec<u8>);

/// A loaded script, not yet run. It stays valid as long as the arena in which it was loaded is only ever put back to
/// states in which it was loaded.
#[derive(Clone, Copy)]
pub(super) struct Program(qjs::JSValue);

/// Compiles a script in strict mode, without running it. The name stands in positions and stack traces.
pub(super) fn compile(ctx: &Ctx<'_>, name: &str, source: &str) -> Result<Bytecode> {
    let name = CString::new(name)?;
    let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY | qjs::JS_EVAL_FLAG_STRICT;
    let flags = i32::try_from(flags).map_err(|_| Error::Unknown)?;
    let write = i32::try_from(qjs::JS_WRITE_OBJ_BYTECODE).map_err(|_| Error::Unknown)?;
    let text = CString::new(source)?;
    let length = text.as_bytes().len();
    // SAFETY: the context is alive and entered; the text is followed by a zero byte as the parser requires; the
    // value that comes back is ours and is freed once; the written bytes are copied before they are freed.
    unsafe {
        let raw = ctx.as_raw().as_ptr();
        let compiled = qjs::JS_Eval(raw, text.as_ptr(), length as _, name.as_ptr(), flags);
        if qjs::JS_IsException(compiled) {
            return Err(Error::Exception);
        }
        let mut size = 0;
        let bytes = qjs::JS_WriteObject(raw, &mut size, compiled, write);
        qjs::JS_FreeValue(raw, compiled);
        if bytes.is_null() {
            return Err(Error::Exception);
        }
        let copy = std::slice::from_raw_parts(bytes, size as usize).to_vec();
        qjs::js_free(raw, bytes.cast());
        Ok(Bytecode(copy))
    }
}

impl Bytecode {
    /// Loads it into a context of another engine in this process.
    pub(super) fn load(&self, ctx: &Ctx<'_>) -> Result<Program> {
        let read = i32::try_from(qjs::JS_READ_OBJ_BYTECODE).map_err(|_| Error::Unknown)?;
        // SAFETY: the bytes were written by the same version of the engine in this process.
        let value =
            unsafe { qjs::JS_ReadObject(ctx.as_raw().as_ptr(), self.0.as_ptr(), self.0.len() as _, read) };
        // SAFETY: it looks at the value's tag only.
        if unsafe { qjs::JS_IsException(value) } { Err(Error::Exception) } else { Ok(Program(value)) }
    }
}

impl Program {
    /// Runs its top level; what comes back is the value of its last expression.
    ///
    /// # Safety
    /// It was loaded in this context, and the arena holds it: no other call used it up since the last restore.
    pub(super) unsafe fn run<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        // SAFETY: as the caller promises; the call takes over the reference that is made for it.
        unsafe {
            // one reference more: taking the program apart would be in vain, the next restore makes it whole again
            let value =
                qjs::JS_EvalFunction(ctx.as_raw().as_ptr(), qjs::JS_DupValue(ctx.as_raw().as_ptr(), self.0));
            if qjs::JS_IsException(value) {
                return Err(Error::Exception);
            }
            Ok(Value::from_raw(ctx.clone(), value))
        }
    }
}
